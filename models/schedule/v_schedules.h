#pragma once

#include <array>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// How many passes' times a micro-batch spends on its way over one stage: going out and coming back, forward and then
// backward. A sum of 6 keeps half as many micro-batches alive as 12.
using Pace = std::array<std::int64_t, 4>;

// Orders of F, I and W for two virtual stages a stage that lie there and back (Qi et al. 2024, "Pipeline Parallelism
// with Controllable Memory", arXiv:2405.15362). Every micro-batch passes in the same pattern, six passes after the one
// before it: two forwards, two input gradients and two weight gradients of one time each. The pattern's pace decides
// how long activations live. Played in the virtual stages' own times, weight gradients go where a stage would wait, or
// where it holds `most` activations of a virtual stage already (half a micro-batch each).
// barriers > 0: stages share the vocabulary, and hold as many micro-batches more (list_scheduling.h).
std::vector<std::vector<Action>> v_orders(const ScheduleShape& shape, const Pace& pace, std::int64_t most,
                                          std::int64_t barriers = 0);

}  // namespace orrery
