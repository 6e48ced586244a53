#pragma once

#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// The factor by which each rank's compute is slowed down (cluster.stragglers): 1 for most. A straggler_share of ranks
// is drawn with the spec's seed; a rank that is also named gets the larger of both slowdowns.
std::vector<double> slowdowns(const Spec& spec);

// The slowdown of one rank; 1 for servers, which are processes on hosts.
double slowdown_of(const Spec& spec, std::int64_t rank);

// The time of the slowest of `gpus` GPUs, relative to the slowest of eight, where GPUs' speeds are normally distributed
// with a standard deviation of `spread` of their mean; 1 for fewer than eight. Steps wait for the slowest GPU. A
// profile's constants come from steps of whole nodes, which already include the slowest of eight.
double slowest_beyond_a_node(double spread, std::int64_t gpus);

}  // namespace orrery
