#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Actions that are inserted into given orders while the orders are simulated with transfers that take no time.
struct Filling {
  // Weight gradients, in orders that run input gradients separately: inserted where a stage waits for at least
  // gap_percent of their own time, and before a forward if the stage already holds activations of `most` micro-batches.
  std::int64_t gap_percent = 100;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t barriers = 0;  // > 0: passes of a vocabulary that all stages share
};

struct FilledOrders {
  std::vector<std::vector<Action>> orders;
  std::int64_t end = 0;  // end of the last stage
};

// Inserts actions into the orders of any schedule of one copy of the model, with virtual stages placed by `placement`.
// Orders are simulated in the virtual stages' times (shape.times; after these come the times of a stage's part of the
// logits and of the lookups).
// A shared vocabulary (Yeung et al. 2024, "Balancing Pipeline Parallelism with Vocabulary Parallelism",
// arXiv:2411.05288, section 5) gives every stage two chunks more, after its own: the lookups of its rows of the
// embedding table, and its part of the logits: forward (the paper's S) when the last virtual stage has broadcast the
// hidden states, backward (T) when the sums of all stages are reduced. The last virtual stage's backward follows all S
// (one barrier) or all T (two). A stage runs each of these passes as soon as it can: micro-batches wait for them, and
// they are short beside the passes that they delay. So that the longer way of a micro-batch causes no waits, backwards
// come as many micro-batches later as there are barriers, and as many more micro-batches are in flight.
FilledOrders fill_orders(const ScheduleShape& shape, ChunkPlacement placement,
                         const std::vector<std::vector<Action>>& orders, const Filling& filling);

// The shortest orders, judged in the shape's own times, of all that fill_orders makes with the shape's times or others
// near them (times_to_try), with each of the given fillings.
std::vector<std::vector<Action>> best_filled(const ScheduleShape& shape, ChunkPlacement placement,
                                             const std::vector<std::vector<Action>>& orders,
                                             const std::vector<Filling>& ways);

}  // namespace orrery
