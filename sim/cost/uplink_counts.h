#pragma once

#include <vector>

#include "sim/cost/uplink_levels.h"

namespace orrery {

// Counts for each level what the groups of every dimension of a plan send over it: UplinkLevel's domains, boundaries,
// edges, pairs and what goes with them.
void count_traffic(const Plan& plan, const Cluster& cluster, const JobSeats& seats, std::vector<UplinkLevel>& levels);

}  // namespace orrery
