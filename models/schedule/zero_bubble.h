#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Returns the regular zero-bubble order of a stage: warm_up forwards, then one forward and one input gradient in turn;
// the weight gradient of a micro-batch comes `lag` input gradients after its input gradient. warm_up + 1 + lag
// micro-batches are in flight.
std::vector<Action> regular_zero_bubble(std::int64_t micro_batches, std::int64_t warm_up, std::int64_t lag);

// Returns orders of F, I and W (forward, input gradient, weight gradient) on every stage with at most `most`
// micro-batches in flight, each counted from its forward to its weight gradient: the search of Qi et al. 2024
// (arXiv:2401.10241, section 3.1). Stages are simulated in logical time (shape.times; transfers take none). A stage
// runs an input gradient or a forward as soon as it can, and a weight gradient if it would otherwise wait, or if it has
// `most` micro-batches in flight. Regular orders (regular_zero_bubble) are candidates too. The order whose slowest
// stage has the shortest time from its first to its last action wins; of several such orders the one that ends first.
std::vector<std::vector<Action>> search_zero_bubble(const ScheduleShape& shape, std::int64_t most);

}  // namespace orrery
