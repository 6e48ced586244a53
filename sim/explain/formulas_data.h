#pragma once

#include <string>

#include "sim/explain/formulas.h"

namespace orrery {

// The bytes that data parallelism moves (parts of volumes()): among replicas and shards of weights, between a master
// rank and all others (DataParallel), or between workers and parameter servers. copies: the dimension of parallelism
// over whose ranks the weights are replicated or sharded.
Volume data_volume(const Spec& spec, const Plan& plan, Dimension copies);
Volume master_volume(const Spec& spec, const Plan& plan);
Volume server_volume(const Spec& spec, const Plan& plan);
// Sizes of the groups of ranks with the same weights, as text: "4", or "2, 1" where stages differ.
std::string group_sizes(const Plan& plan, Dimension copies);

}  // namespace orrery
