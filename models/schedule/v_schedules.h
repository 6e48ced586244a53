#pragma once

#include <array>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// A pace: the times, in units of the duration of a pass, between the starts of the passes of a micro-batch on
// neighbouring stages, in the four parts of its way through the V: forward to the last stage, forward back to the
// first, then backward to the last stage and back. If the four times sum to 6, half as many micro-batches are in flight
// as if they sum to 12.
using Pace = std::array<std::int64_t, 4>;

// Returns the orders of F, I and W (forward, input gradient, weight gradient) for two virtual stages a stage that are
// placed as a V (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362). Every micro-batch
// runs in the same pattern, which begins six passes after that of the previous micro-batch: two forwards, two input
// gradients and two weight gradients, each of which takes one unit of time. The pattern's pace decides how long
// activations are kept. The orders are then simulated with the times of the virtual stages; weight gradients are
// inserted where a stage would wait, or where it already holds `most` activations of a virtual stage (half a
// micro-batch each). barriers > 0: stages share the vocabulary, and hold as many more micro-batches as there are
// barriers (list_scheduling.h).
std::vector<std::vector<Action>> v_orders(const ScheduleShape& shape, const Pace& pace, std::int64_t most,
                                          std::int64_t barriers = 0);

}  // namespace orrery
