#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Whether a gradient is kept in the buffer of its unit until it is reduced, rather than in the chunk's flat buffer.
bool unit_gradients(const Spec& spec, const ShardingRow& row);

// How gradients are averaged over the data ranks: by a pass that divides them before they are reduced, or by a divided
// copy into buckets, which are reduced and copied back; each rank's loss is then the mean over its own tokens. none:
// the loss is the mean over the tokens of all data ranks, and gradients are summed; also if stages have different
// numbers of replicas, and so no common number to divide by.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
