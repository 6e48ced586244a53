#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Chimera (Li and Hoefler 2021, arXiv:2107.06925): two copies of the model whose pipelines run in opposite directions
// over the same stages, half of the micro-batches each; at most p in flight on a stage. Forwards take one unit of time,
// backwards two. A stage runs the pass that can begin first, and of two such passes the backward. For p micro-batches
// this is the paper's unit; for more micro-batches several limits of those in flight per direction are tried and the
// shortest order is taken (the paper concatenates units). With more copies, of the same paper, half of them run each
// way, and the copies of one direction begin at evenly spaced stages. Bubbles are shorter still, and a stage holds a
// stage of every copy.
std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape, std::int64_t copies = 2);

}  // namespace orrery
