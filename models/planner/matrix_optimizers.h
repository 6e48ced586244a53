#pragma once

#include <vector>

#include "models/layout/draft.h"
#include "models/tasks/task_writer.h"

namespace orrery {

// Updates of optimizers that see whole matrices, where they are not element-wise: muon.cpp, adafactor.cpp.

// The part of Muon's update that is not element-wise (Jordan 2024; Liu et al. 2025, 2502.16982, section 2.2.2): layer
// by layer, every data rank orthogonalises the momentum of its share of the matrices, each of them whole. Ranks that
// hold whole states pass the results on (an all-gather, wΨ); ranks that hold shards send each matrix' pieces to the
// rank that orthogonalises it, and get the results' pieces back (two all-to-alls of wΨ/N). Returns the tasks to wait
// for.
std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after);

// Adafactor (Shazeer and Stern 2018, 1804.04235, algorithm 4) takes two passes before it can update an element: the
// sums of the squares of rows and columns, and the root mean square of the update, which is limited. Ranks with shards
// of a matrix add their parts of both up. Returns the tasks to wait for.
std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after);

}  // namespace orrery
