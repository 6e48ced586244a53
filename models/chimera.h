#pragma once

#include <vector>

#include "models/schedules.h"

namespace orrery {

// Chimera (Li and Hoefler 2021, arXiv:2107.06925): two copies of the model whose pipelines run in opposite directions
// over the same stages, half of the micro-batches each; at most p in flight on a stage. Forwards take one, backwards
// two. Whatever can begin first does; backwards go before forwards. For p micro-batches this is the paper's unit; for
// more, of the bounds on what each direction has in flight the one with the shortest order is taken (the paper
// concatenates units).
std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape);

}  // namespace orrery
