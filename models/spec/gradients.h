#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Whether a gradient is kept in the buffer of its unit until it is reduced, rather than in a flat buffer for the chunk
// of layers.
bool unit_gradients(const Spec& spec, const ShardingRow& row);

// How gradients are averaged over the data ranks. scale: one pass divides them before they are reduced; copy: they are
// divided as they are copied into buckets, which are reduced and copied back. With either, each rank's loss is the mean
// over its own tokens. none: the loss is the mean over the tokens of all data ranks, and gradients are summed; so too
// if stages have different numbers of replicas, because then no number to divide by is right for all stages.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
