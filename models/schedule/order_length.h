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

// Returns the lists of times of the virtual stages with which a search for an order is run, one after another: the
// pipeline's own times (shape.times), and variants in which some phases take longer or shorter. The search takes the
// best of the orders that it finds, so that of two pipelines with nearly the same times both get the better order. For
// long orders only the own times are returned.
std::vector<std::vector<PhaseTimes>> times_to_try(const ScheduleShape& shape);

}  // namespace orrery
