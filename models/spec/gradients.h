#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns whether gradients are reduced over the data ranks only with the last micro-batch of an update, not with every
// micro-batch. If the strategy does not say, the result depends on the sharding and the training stack: true for DDP
// and ZeRO-1, where each rank has unsharded gradients anyway, and for ZeRO-2 if the stack keeps gradients unsharded
// until the last micro-batch; false for ZeRO-3 and FSDP, which reduce every micro-batch's gradients so as not to need
// memory for unsharded ones.
bool no_sync(const Spec& spec, const ShardingRow& row);

// These functions say in which buffers gradients lie until they are reduced over the data ranks.
// unit_gradients: whether gradients are reduced unit by unit (a unit: the layers that FSDP or ZeRO-3 gathers together)
// into the shards of this rank; otherwise they are reduced bucket by bucket, in one flat buffer for each chunk of
// layers.
// fresh_gradients: whether the gradient of each micro-batch lies in a buffer of its unit until it is reduced. Units
// that are reduced only with the last micro-batch sum unsharded gradients in the flat buffer instead.
// reduces_each_time: whether buckets are reduced with every micro-batch. The flat buffer then holds sums that are the
// same on all ranks plus new gradients that differ, so the reduction must take the mean over ranks.
bool unit_gradients(const Spec& spec, const ShardingRow& row);
bool fresh_gradients(const Spec& spec, const ShardingRow& row);
bool reduces_each_time(const Spec& spec, const ShardingRow& row);

// Returns whether the kernels that compute weight gradients, those of matrix products (adds_in_products) or of
// embedding lookups (adds_in_lookups), themselves add to the sums over micro-batches. If not, which is always so if the
// strategy keeps 16-bit gradients, they write the gradient of one micro-batch, and another op adds it to the sums.
bool adds_in_products(const Spec& spec);
bool adds_in_lookups(const Spec& spec);

// Returns how gradients are averaged over the data ranks. scale: one pass divides them before they are reduced; copy:
// they are divided as they are copied into buckets, which are reduced and copied back. With scale and copy, the loss of
// each rank is the mean over its own tokens. none: the loss is the mean over the tokens of all data ranks, and
// gradients are summed without a division; this is also the result if stages have different numbers of replicas,
// because then no divisor is right for all stages.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
