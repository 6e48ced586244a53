#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns whether gradients are reduced with the last micro-batch of an update alone, not with every one: as the
// strategy says, else by the stack's habit. DDP and ZeRO-1 keep whole gradients anyway; ZeRO-2 where the stack keeps
// them whole; ZeRO-3 and FSDP reduce with every micro-batch, because they are there to save the memory of whole
// gradients.
bool no_sync(const Spec& spec, const ShardingRow& row);

// These functions say in which buffers gradients lie until they are reduced.
// unit_gradients: whether gradients are reduced unit by unit, into this rank's shards of them; else they are reduced
// bucket by bucket, in the chunk's flat buffer.
// fresh_gradients: whether a micro-batch's gradient lies in the buffer of its unit until it is reduced. Units that
// reduce with the last micro-batch alone sum whole gradients in the chunk's flat buffer instead.
// reduces_each_time: whether buckets are reduced with every micro-batch. The flat buffer then holds sums that are the
// same on all ranks and new gradients that differ, so the reduction must take the mean over ranks.
bool unit_gradients(const Spec& spec, const ShardingRow& row);
bool fresh_gradients(const Spec& spec, const ShardingRow& row);
bool reduces_each_time(const Spec& spec, const ShardingRow& row);

// Returns how gradients are averaged over the data ranks. scale: one pass divides them before they are reduced; copy:
// they are divided as they are copied into buckets, which are reduced and copied back. With either, each rank's loss is
// the mean over its own tokens. none: the loss is the mean over the tokens of all data ranks, and gradients are summed;
// so too if stages have different numbers of replicas, because then no number to divide by is right for all stages.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
