#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Returns the time when the last stage ends if complete orders are run unchanged with the times of their virtual stages
// (shape.times, as for fill_orders); transfers take no time, and exchanges among all stages take `gap`. This time
// serves to compare orders that were found with other times. The result is the largest value of the type if the orders
// deadlock. places: the stage of each virtual stage, and the chunks of a shared vocabulary.
std::int64_t order_length(const Schedule& places, const std::vector<std::vector<Action>>& orders,
                          const ScheduleShape& shape, std::int64_t gap);

// Returns candidate times to find orders with: the times of a shape, times near them, and times far from them. The best
// order found with any of them is taken, so that for two shapes whose times differ little both get the better order.
// For long orders only the shape's own times are returned.
std::vector<std::vector<PhaseTimes>> times_to_try(const ScheduleShape& shape);

}  // namespace orrery
