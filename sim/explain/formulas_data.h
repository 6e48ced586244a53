#pragma once

#include <string>

#include "sim/explain/formulas.h"

namespace orrery {

// The parts of volumes() that come from data parallelism: replicas and shards of the weights with these copies, a
// master rank, or parameter servers.
Volume data_volume(const Spec& spec, const Plan& plan, Dimension copies);
Volume master_volume(const Spec& spec, const Plan& plan);
Volume server_volume(const Spec& spec, const Plan& plan);
// Sizes of the groups of ranks with the same weights, as text: "4", or "2, 1" where stages differ.
std::string group_sizes(const Plan& plan, Dimension copies);

}  // namespace orrery
