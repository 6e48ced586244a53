#pragma once

#include <functional>
#include <vector>

#include "sim/explain/techniques.h"

namespace orrery {

// A spec with a changed strategy, made consistent: ranks that the new parallel degrees do not need become replicas, and
// options of techniques that are no longer used are reset.
Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change);

// Resets the options that belong to the sharding that the strategy used before: shard groups, FSDP units, when
// gradients are reduced and how many bits they have.
void drop_sharding_options(Strategy& s);
// Adds to the list the techniques that change which gradients and weights are transferred, which weights are trained,
// and what training samples consist of.
void add_training(const Spec& spec, std::vector<Technique>& list);

// Adds to the list the jobs that share the cluster's switches with this one.
void add_neighbours(const Spec& spec, std::vector<Technique>& list);

// Adds to the list the spread of experts over ranks, of either model of a step.
void add_experts(const Spec& spec, std::vector<Technique>& list);

// Adds to the list the techniques that spend time or bytes to save memory: ZeRO-R, tiling, kinds of attention.
void add_memory(const Spec& spec, std::vector<Technique>& list);

}  // namespace orrery
