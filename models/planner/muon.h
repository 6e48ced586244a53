#pragma once

#include <vector>

#include "models/layout/draft.h"
#include "models/planner/task_writer.h"

namespace orrery {

// The part of Muon's update that is not element-wise (Jordan 2024; Liu et al. 2025, 2502.16982, section 2.2.2): layer
// by layer, every data rank orthogonalises the momentum of its share of the matrices, each of them whole. Ranks that
// hold whole states pass the results on (an all-gather, wΨ); ranks that hold shards send each matrix' pieces to the
// rank that orthogonalises it, and get the results' pieces back (two all-to-alls of wΨ/N). Returns the tasks to wait
// for.
std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after);

}  // namespace orrery
