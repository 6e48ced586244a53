#pragma once

#include "models/spec/spec.h"

namespace orrery {

// Returns whether a rank's kernels begin in the order of their launches, even on different CUDA streams
// (CUDA_DEVICE_MAX_CONNECTIONS=1; Software::Communication::one_queue). With FSDP, and if the ops of two micro-batches
// are interleaved (Overlap::micro_batches), they do not: Megatron asks users to allow several hardware queues in both
// cases.
bool has_one_queue(const Spec& spec);

}  // namespace orrery
