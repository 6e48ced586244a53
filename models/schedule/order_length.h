#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// The time when the last stage ends, if complete orders are run as they are with their virtual stages' times
// (shape.times, as fill_orders takes them); transfers take no time, and exchanges among all stages take `gap`. It
// judges orders that were found with other times. The result is the largest value if the orders deadlock. places: where
// virtual stages lie, and the chunks of a shared vocabulary.
std::int64_t order_length(const Schedule& places, const std::vector<std::vector<Action>>& orders,
                          const ScheduleShape& shape, std::int64_t gap);

// Candidate times: the times of a shape, and others near them and far from them. Orders found with these compete with
// those found with the shape's own, so that two shapes whose times differ a little both find the better order. Long
// orders are found with their own times alone.
std::vector<std::vector<PhaseTimes>> times_to_try(const ScheduleShape& shape);

}  // namespace orrery
