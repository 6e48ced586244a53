#pragma once

#include "models/layout/draft.h"

// Memory that ZeRO-R (Rajbhandari et al. 2020, 1910.02054, sections 6.2 and 6.3) allocates once and keeps: a buffer of
// constant size in which gradients are reduced (CB), and one for the inputs that recomputed layers keep, side by side,
// so that short-lived buffers do not fragment the allocator's segments between them (MD).

namespace orrery {

// Size of the fused buffer: as large as the largest bucket.
Bytes fused_bytes(const Draft& draft);
// Adds the buffer for the inputs that recomputed layers keep, still without a size.
void add_arena(Draft& draft);
// Makes the arena as large as the most of its buffers that are alive at one time, in the order of issue.
void size_arena(Draft& draft);

}  // namespace orrery
