#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// A OrderFilling says which actions fill_orders inserts into given orders, and when, while it simulates these orders
// with transfers that take no time.
struct OrderFilling {
  // Weight gradients, in orders that run input gradients separately, are inserted where a stage would wait for at least
  // gap_percent of a weight gradient's time, and before a forward if the stage already holds activations of `most`
  // micro-batches.
  std::int64_t gap_percent = 100;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  // number of barriers at which all stages meet, if the passes of a vocabulary that all stages share are inserted too;
  // 0: they are not
  std::int64_t barriers = 0;
};

struct FilledOrders {
  std::vector<std::vector<Action>> orders;
  std::int64_t end = 0;  // time at which the last stage ends, in the unit of ScheduleShape::times
};

// Inserts actions into the orders of any schedule of one copy of the model, with virtual stages placed by `placement`.
// Orders are simulated with the times of the virtual stages (shape.times; the two entries after these are the times of
// a stage's part of the logits and of the token lookups). If the stages share the vocabulary (Yeung et al. 2024,
// "Balancing Pipeline Parallelism with Vocabulary Parallelism", arXiv:2411.05288, section 5), every stage has two more
// chunks after its own. One has the lookups in the stage's rows of the embedding table. The other has its part of the
// logits, with a forward (the paper's S) that begins when the last virtual stage has broadcast the hidden states, and a
// backward (T) that begins when the sums of all stages are reduced. The last virtual stage's backward comes after all S
// (one barrier) or all T (two barriers). A stage runs each of these passes as soon as it can, because micro-batches
// wait for them and they are short compared with the passes that they delay. A micro-batch takes longer because of
// these passes. To avoid waits, each backward comes as many micro-batches later as there are barriers, so that as many
// more micro-batches are in flight.
FilledOrders fill_orders(const ScheduleShape& shape, ChunkPlacement placement,
                         const std::vector<std::vector<Action>>& orders, const OrderFilling& filling);

// Returns the shortest of all orders that fill_orders makes from `orders` with any of the rules in `ways` and with any
// of several lists of times: the pipeline's own (shape.times), and others near them (times_to_try). The length of each
// order is measured with the own times.
std::vector<std::vector<Action>> best_filled(const ScheduleShape& shape, ChunkPlacement placement,
                                             const std::vector<std::vector<Action>>& orders,
                                             const std::vector<OrderFilling>& ways);

}  // namespace orrery
