#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Returns the order of actions of every stage in Chimera (Li and Hoefler 2021, arXiv:2107.06925): two copies of the
// model whose pipelines run in opposite directions over the same p stages, each with half of the micro-batches; at most
// p micro-batches are in flight on a stage. A forward takes one unit of time, a backward two. A stage runs the pass
// that can begin first, and of two passes that can begin at the same time the backward. For p micro-batches the result
// is the paper's basic schedule; for more micro-batches several limits on the number in flight per direction are tried
// and the shortest order is taken (the paper concatenates basic schedules). With more than two copies, as in the same
// paper, half of them run in each direction, and the copies of one direction begin at evenly spaced stages. Bubbles are
// then shorter still, and each stage holds the weights of one stage of every copy.
std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape, std::int64_t copies = 2);

}  // namespace orrery
