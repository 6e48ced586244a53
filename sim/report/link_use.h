#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// How much of a link's rate a step uses on average: of that link of a kind, in that direction, which is used most.
struct LinkUseRow {
  std::string link;  // kind of link: "NIC", "NVLink", "uplinks of 256 GPUs"
  std::string of;    // which one: "GPUs 256 to 511, stage 0, sending"
  double share = 0;  // bytes over the link in a step, over what it could carry in the step
};

// Returns the fullest link of each kind and level that a step's transfers use, the fullest first. step: its length.
std::vector<LinkUseRow> link_uses(const Plan& plan, const Timing& timing, Picoseconds step, const Cluster& cluster);

}  // namespace orrery
