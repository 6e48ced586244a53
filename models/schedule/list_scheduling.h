#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Actions that are put between those of given orders while the orders are played, transfers taking no time.
struct Filling {
  // Weight gradients, where orders run input gradients apart: put into waits of at least gap_percent of their own time,
  // and before a forward where the stage holds activations of `most` micro-batches already.
  std::int64_t gap_percent = 100;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t barriers = 0;  // > 0: passes of a vocabulary that all stages share
};

struct FilledOrders {
  std::vector<std::vector<Action>> orders;
  std::int64_t end = 0;  // end of the last stage
};

// Fills the orders of any schedule of one copy of the model, whose virtual stages lie as `placement` says. Orders are
// played in the virtual stages' times (shape.times; behind them the times of a part of the logits and of a part of the
// lookups).
//
// A shared vocabulary (Yeung et al. 2024, "Balancing Pipeline Parallelism with Vocabulary Parallelism",
// arXiv:2411.05288, section 5) gives every stage two chunks more, behind its own: the lookups of its rows of the
// embedding table, and its part of the logits: forward (the paper's S) when the last virtual stage has sent the hidden
// states round, backward (T) when all stages have put their sums together. The last virtual stage's backward follows
// all S (one barrier) or all T (two). A stage takes each of these passes as soon as it can: they lie on the way of a
// micro-batch, and are short beside the passes that they delay. So that this longer way brings no waits, backwards come
// as many micro-batches later as there are barriers, and as many more micro-batches are in flight.
FilledOrders fill_orders(const ScheduleShape& shape, ChunkPlacement placement,
                         const std::vector<std::vector<Action>>& orders, const Filling& filling);

// The shortest orders, in the shape's own times, among orders that were filled in these or other times (times_to_try),
// in any of the ways given.
std::vector<std::vector<Action>> best_filled(const ScheduleShape& shape, ChunkPlacement placement,
                                             const std::vector<std::vector<Action>>& orders,
                                             const std::vector<Filling>& ways);

}  // namespace orrery
