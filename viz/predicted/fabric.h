#pragma once

#include <string>
#include <vector>

#include "viz/predicted/step.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// How full a link of the cluster is over a simulated step (LinkLoad), as a curve whose series are kinds of
// communication and whose values are shares of the link's capacity. A step that is shown several times has its load as
// often.
struct FabricLoad {
  std::string name, of;       // "NIC", "stage 0, sending"
  double capacity_GBps = 0;   // in one direction; 0: not known
  double mean = 0, peak = 0;  // of the capacity
  std::vector<Kind> kinds;    // for each series of `curve`
  Counter curve;
};
std::vector<FabricLoad> fabric_of(const Step& step);

// A share of a link's capacity in words: "45.1 GB/s, 90 %"; without the rate where the capacity is not known.
std::string load_text(const FabricLoad& load, double share);
// Returns lines on what the link carries at a time: a line for the link and its capacity, one for the load, one for
// each kind of communication.
std::vector<std::string> load_at(const FabricLoad& load, Picoseconds time);

}  // namespace orrery
