#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "models/trace/trace.h"
#include "sim/engine/timing.h"

namespace orrery {

// How full a link is over a simulated step: that link of a kind, in that direction, which is fullest in the mean. The
// load is constant from each time to the next.
struct LinkLoad {
  std::string name;               // kind of link: "NIC", "NVLink", "uplinks of 256 GPUs"
  std::string of;                 // the link that is the fullest: "stage 0, sending"
  double capacity = 0;            // bytes per second in one direction; 0: not known
  std::vector<Dimension> groups;  // dimensions of parallelism whose transfers load the link
  std::vector<Picoseconds> times;
  std::vector<double> shares;  // for each time and each of `groups`, the share of the capacity that is used
  double mean = 0, peak = 0;   // share of the capacity used by all groups together, over the step and at its most
};

// Returns the loads of the fullest NIC, of the fullest links of a GPU to others of its node (NVLink), and of the
// fullest links of every level above the nodes (uplinks of switches, links of a torus, ...); none for a kind that no
// transfer uses. The rates of transfers are those of the engine, which the trace's times are played through again, so
// that a link's load is at most its capacity. A transfer counts on the level of uplinks that it fills most. An uplink's
// load counts the transfers of the ranks that share it in the plan, not those of other stages below the same switch.
// timing: that from which the trace was simulated; cluster: that of the costs (Prediction::cluster), whose uplinks have
// the rate that neighbours' jobs leave.
std::vector<LinkLoad> link_loads(const Plan& plan, const Timing& timing, const Trace& trace, const Cluster& cluster);

}  // namespace orrery
