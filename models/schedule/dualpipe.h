#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Returns the order of actions of one rank of DualPipe or DualPipeV (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1,
// and their published schedule). A micro-batch passes `half_ranks` ranks up to the middle of the pipeline, this rank is
// the `half_rank`-th of them, and there are `micro_batches` in each direction; chunk 0 belongs to the direction that
// begins at the end of the pipeline nearest to the rank. A forward and a backward of opposite directions are
// interleaved op by op; at the start and end of the step backward is split, so that weight gradients fill the waits.
// The bubble is (half_ranks - 1)(F&B + B - 3W), where F&B is the time of a forward interleaved with a backward, B that
// of a complete backward and W that of a weight gradient; at most 2 half_ranks + 1 activations of a chunk are kept.
// Throws Error if there are fewer than 2 half_ranks micro-batches in each direction.
std::vector<Action> dualpipe_order(std::int64_t half_ranks, std::int64_t half_rank, std::int64_t micro_batches);

}  // namespace orrery
