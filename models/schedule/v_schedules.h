#pragma once

#include <array>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// How much time, in passes, a micro-batch spends on each stage on its way there and back through the V: forward there,
// forward back, then backward there and back. A sum of 6 keeps half as many micro-batches alive as 12.
using Pace = std::array<std::int64_t, 4>;

// Orders of F, I and W for two virtual stages a stage that are placed as a V (Qi et al. 2024, "Pipeline Parallelism
// with Controllable Memory", arXiv:2405.15362). Every micro-batch runs in the same pattern, six passes after the one
// before it: two forwards, two input gradients and two weight gradients of one time each. The pattern's pace decides
// how long activations live. Simulated in the virtual stages' own times, weight gradients run where a stage would wait,
// or where it already holds `most` activations of a virtual stage (half a micro-batch each). barriers > 0: stages share
// the vocabulary, and hold as many micro-batches more (list_scheduling.h).
std::vector<std::vector<Action>> v_orders(const ScheduleShape& shape, const Pace& pace, std::int64_t most,
                                          std::int64_t barriers = 0);

}  // namespace orrery
