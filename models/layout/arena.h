#pragma once

#include "models/layout/draft.h"

// Memory that ZeRO-R (Rajbhandari et al. 2020, 1910.02054, sections 6.2 and 6.3) takes once and keeps: a buffer of
// constant size in which gradients are reduced (CB), and one in which the inputs that recomputed layers keep lie side
// by side, so that buffers that come and go between do not cut the allocator's segments into pieces (MD).

namespace orrery {

// Size of the fused buffer: as large as the largest bucket.
Bytes fused_bytes(const Draft& draft);
// Adds the buffer of recomputed layers' inputs, still without a size.
void add_arena(Draft& draft);
// Makes the arena as large as the buffers that lie in it at any time, in the order of issue.
void size_arena(Draft& draft);

}  // namespace orrery
