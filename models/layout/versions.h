#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Whether the schedule updates once a step (PipeDream-2BW), however many micro-batches a step has.
bool updates_by_step(const Draft& draft);
// Adds a frame for each further version of the weights; the first version is the state's own weights.
void add_versions(Draft& draft, Chunk& chunk);
// The frame of the weights after that number of updates.
std::uint32_t version(const Chunk& chunk, std::int64_t updates);
// The frame of the weights that a micro-batch uses; kNone: those of the state.
std::uint32_t weights_of(const Draft& draft, const Chunk& chunk, std::int32_t micro_batch);

}  // namespace orrery
