#pragma once

#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Returns the factor by which the compute of each rank is slowed down (cluster.stragglers): 1 for most ranks. A share
// straggler_share of the ranks is drawn with the spec's seed; a drawn rank that is also named in the spec gets the
// larger of its two slowdowns.
std::vector<double> slowdowns(const Spec& spec);

// Returns the factor by which the compute of one rank is slowed down; 1 for servers, which are processes on hosts.
double slowdown_of(const Spec& spec, std::int64_t rank);

// Returns the time of the slowest of `gpus` GPUs, relative to the slowest of eight GPUs, if GPU speeds are normally
// distributed with a standard deviation of `spread` times their mean; 1 for eight or fewer. Steps wait for the slowest
// GPU. The constants of a profile come from steps on full nodes, so they already include the slowest of eight.
double slowest_beyond_a_node(double spread, std::int64_t gpus);

// Returns the standard deviation of GPUs' speeds, as a share of their mean, that a job's steps wait for: the cluster's
// (cluster.variation.gpus), or if it gives none that of the profile.
double gpu_spread(const Cluster& cluster, double of_profile);

}  // namespace orrery
