#pragma once

#include <vector>

#include "models/spec.h"

namespace orrery {

// How many times as long every GPU's compute takes, by rank (cluster.stragglers): 1 for most. Ranks of a share are
// drawn by the spec's seed; one that is named too is as slow as the larger of both says.
std::vector<double> slowdowns(const Spec& spec);

// Of one rank; 1 for servers, which are processes on hosts.
double slowdown_of(const Spec& spec, std::int64_t rank);

}  // namespace orrery
