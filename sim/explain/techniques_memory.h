#pragma once

#include <functional>
#include <vector>

#include "sim/explain/techniques.h"

namespace orrery {

// The spec after a change of its strategy, made consistent: ranks that the new degrees do not need become replicas, and
// options of techniques that are no longer used are dropped.
Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change);

// Resets what only the sharding before had: shard groups, units, when gradients are reduced and how wide.
void drop_sharding_options(Strategy& s);
// Adds to the list what changes which gradients and weights travel, what trains, and what samples consist of.
void add_training(const Spec& spec, std::vector<Technique>& list);

// Adds to the list the techniques that spend time or bytes to save memory: ZeRO-R, tiling, the kind of attention.
void add_memory(const Spec& spec, std::vector<Technique>& list);

}  // namespace orrery
