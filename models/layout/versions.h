#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Returns whether the schedule updates the weights once a step (PipeDream-2BW), and not after every micro-batch.
bool updates_by_step(const Draft& draft);
// Adds the buffers (a frame) of each further version of the weights that an asynchronous schedule keeps; the first
// version is the buffer of weights in the chunk's states.
void add_versions(Draft& draft, Chunk& chunk);
// Returns the id of the frame (buffers) that holds the version of the weights after `updates` updates.
std::uint32_t version(const Chunk& chunk, std::int64_t updates);
// Returns the id of the frame (buffers) that holds the version of the weights which a micro-batch uses; kNone stands
// for the weights in the chunk's states.
std::uint32_t weights_of(const Draft& draft, const Chunk& chunk, std::int32_t micro_batch);

}  // namespace orrery
