#pragma once

#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// How many times as long every GPU's compute takes, by rank (cluster.stragglers): 1 for most. Ranks of straggler_share
// are drawn by the spec's seed; a rank that is also named is as slow as the larger of both says.
std::vector<double> slowdowns(const Spec& spec);

// The slowdown of one rank; 1 for servers, which are processes on hosts.
double slowdown_of(const Spec& spec, std::int64_t rank);

// How many times as long the slowest of so many GPUs takes as the slowest of eight, where GPUs' speeds are normal with
// a standard deviation of `spread` of their mean; 1 for fewer. Steps wait for the slowest GPU. A profile's constants
// come from steps of whole nodes, so that the slowest of eight is already in them.
double slowest_beyond_a_node(double spread, std::int64_t gpus);

}  // namespace orrery
