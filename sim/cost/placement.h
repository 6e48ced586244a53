#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/cluster.h"

namespace orrery {

// Nodes, or NVLink domains that are larger than a node, are counted here in sets of `node_gpus` GPUs.

// Returns for each set of a job its place among the cluster's sets, in the order of the job's ranks
// (cluster.network.placement); empty: the job has the first ones.
std::vector<std::int64_t> places_of(const Cluster& cluster, std::int64_t node_gpus);

// Returns the rate of the slowest NIC of a job of `gpus` GPUs, and the number of uplinks that work on the leaf of the
// job that has fewest (cluster.network.faults). cluster.network must be set.
double slowest_nic_Gbps(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                        std::int64_t gpus);
std::int64_t least_uplinks(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                           std::int64_t gpus);

}  // namespace orrery
