#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Whether gradients live in a unit's own buffer until they are reduced, rather than in the chunk's flat one.
bool unit_gradients(const Spec& spec, const ShardingRow& row);

// How gradients become their mean over the data ranks: by a pass that divides them before they are reduced, or by a
// divided copy into buckets, which are reduced and copied back; each rank's loss is then the mean over its own tokens.
// none: the loss is the mean over the tokens of all data ranks, and gradients are summed. Stages of unlike replicas
// have no such mean in common.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
