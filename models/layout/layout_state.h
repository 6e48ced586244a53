#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Returns the block with the flat buffers of a chunk's states (ZeRO: Rajbhandari et al. 2020, section 3): 16-bit
// weights, gradients, fp32 master weights and two optimizer moments; each buffer is complete, or one rank's shard.
Block state_block(const Draft& draft, const Chunk& chunk);

}  // namespace orrery
