#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// The regular zero-bubble order: warm_up forwards, then one forward and one input gradient in turn; the weight gradient
// of a micro-batch follows `lag` input gradients later. warm_up + 1 + lag micro-batches are in flight.
std::vector<Action> regular_zero_bubble(std::int64_t micro_batches, std::int64_t warm_up, std::int64_t lag);

// Orders of F, I and W on every stage with at most `most` micro-batches in flight, counted from their forward to their
// weight gradient: the search of Qi et al. 2024 (arXiv:2401.10241, section 3.1). Stages are simulated in logical time
// (shape.times; transfers take none): a stage runs an input gradient or a forward as soon as it can, and a weight
// gradient where it would wait, or where it has `most` micro-batches in flight. Regular orders are candidates too:
// `warm_up` forwards, then one of each in turn. The order with the shortest busy span of its slowest stage wins, then
// the one that ends first.
std::vector<std::vector<Action>> search_zero_bubble(const ScheduleShape& shape, std::int64_t most);

}  // namespace orrery
