#pragma once

#include "models/spec/spec.h"

namespace orrery {

// Returns whether a rank's kernels begin in the order of their launches, whatever their streams
// (Software::Communication::one_queue). They do not with FSDP, nor if the ops of two micro-batches are interleaved
// (Overlap::micro_batches): Megatron asks users to allow several hardware queues in both cases.
bool has_one_queue(const Spec& spec);

}  // namespace orrery
