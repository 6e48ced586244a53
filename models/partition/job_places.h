#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/cluster.h"

namespace orrery {

// Nodes, or NVLink domains that are larger than a node, are counted here in sets of `node_gpus` GPUs.

// Returns for each set of a job its place among the cluster's sets, in the order of the job's ranks
// (cluster.network.placement); empty: the job has the first ones.
std::vector<std::int64_t> places_of(const Cluster& cluster, std::int64_t node_gpus);

// Returns the rate that the slowest NIC of a job of `gpus` GPUs has for the training's transfers, and the number of
// uplinks that work on the leaf of the job that has fewest (cluster.network.faults). cluster.network must be set.
double slowest_nic_Gbps(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                        std::int64_t gpus);
std::int64_t least_uplinks(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                           std::int64_t gpus);

// Returns what slow links (LinkFault::link) leave of the rate of the job's leaf that lacks most by them: how many whole
// uplinks are lost to it, and the rate of the slowest one over that of the others.
struct SlowUplinks {
  double lost = 0, slowest = 1;
};
SlowUplinks slow_uplinks(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                         std::int64_t gpus);

// The GPUs of the cluster, in order, whose transfers go through a NIC that alone is slow (LinkFault::nic), of one rate.
struct SlowNics {
  std::vector<std::int64_t> gpus;
  double Gbps = 0;
};
// Returns such GPUs of the job by the rate of their NIC, the slowest first. More than kMostNicRates rates, each of
// which is a level of links of its own and makes ranks unlike, are not told apart: those above have the highest that
// is.
inline constexpr std::int64_t kMostNicRates = 4;
std::vector<SlowNics> slow_nics(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                                std::int64_t gpus);

// The number of planes (cluster.network.planes) that work between the two leaves of the job that share fewest, between
// its two NICs that share fewest, and above all leaves. cluster.network must be set.
struct WorkingPlanes {
  std::int64_t of_leaves = 1, of_nics = 1, of_spine = 1;
};
WorkingPlanes working_planes(const Cluster& cluster, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                             std::int64_t gpus);

}  // namespace orrery
