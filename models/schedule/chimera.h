#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Chimera (Li and Hoefler 2021, arXiv:2107.06925): two copies of the model whose pipelines run in opposite directions
// over the same stages, half of the micro-batches each; at most p in flight on a stage. Forwards take one unit of time,
// backwards two. The pass that can begin first does; backwards go before forwards. For p micro-batches this is the
// paper's unit; for more, of the bounds on what each direction has in flight the one with the shortest order is taken
// (the paper concatenates units). More copies, of the same paper: half of them run each way, and of these each begins
// as many stages after the one before it as divide the stages evenly. Bubbles are shorter still, and a stage holds a
// stage of every copy.
std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape, std::int64_t copies = 2);

}  // namespace orrery
