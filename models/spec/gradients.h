#pragma once

#include <cstdint>

#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Whether gradients are reduced with the last micro-batch of an update alone: as the strategy says, else by habit. DDP
// and ZeRO-1 keep whole gradients anyway; ZeRO-2 where the stack keeps them whole; ZeRO-3 and FSDP reduce with every
// micro-batch, since whole gradients are what they are to save.
bool no_sync(const Spec& spec, const ShardingRow& row);

// How gradients live until they are reduced.
// unit_gradients: they are reduced unit by unit, into this rank's shards of them; else bucket by bucket, in the chunk's
// flat buffer.
// fresh_gradients: a micro-batch's gradient lies in the buffer of its unit until it is reduced. Units that reduce with
// the last micro-batch alone sum whole gradients in the chunk's flat buffer.
// reduces_each_time: buckets are reduced with every micro-batch. The flat buffer then holds sums that are the same on
// all ranks beside the gradients that differ, so that the reduction must take their mean.
bool unit_gradients(const Spec& spec, const ShardingRow& row);
bool fresh_gradients(const Spec& spec, const ShardingRow& row);
bool reduces_each_time(const Spec& spec, const ShardingRow& row);

// How gradients are averaged over the data ranks. scale: one pass divides them before they are reduced; copy: they are
// divided as they are copied into buckets, which are reduced and copied back. With either, each rank's loss is the mean
// over its own tokens. none: the loss is the mean over the tokens of all data ranks, and gradients are summed; so too
// if stages have different numbers of replicas, because then no number to divide by is right for all stages.
Averaging averaging(const Spec& spec, const ShardingRow& row);

}  // namespace orrery
