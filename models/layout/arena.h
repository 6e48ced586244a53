#pragma once

#include "models/layout/draft.h"

// These functions add to a plan the memory that ZeRO-R (Rajbhandari et al. 2020, 1910.02054, sections 6.2 and 6.3)
// allocates once and keeps: a buffer of constant size in which gradients are reduced (the paper's CB), and an arena in
// which the kept inputs of recomputed layers lie one after another, so that they do not fragment the allocator's
// segments (the paper's MD).

namespace orrery {

// Returns the bytes of the fused buffer, in which gradients are reduced; it is as large as the largest bucket.
Bytes fused_bytes(const Draft& draft);
// Adds the arena for the inputs that recomputed layers keep; size_arena() sets its size later.
void add_arena(Draft& draft);
// Sets the arena's size to the largest number of bytes of its buffers that are allocated at the same time, if tasks are
// issued in the order of the plan.
void size_arena(Draft& draft);

}  // namespace orrery
