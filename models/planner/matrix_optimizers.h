#pragma once

#include <vector>

#include "models/layout/draft.h"
#include "models/tasks/task_writer.h"

namespace orrery {

// This header has the parts of optimizer updates that are not element-wise and need whole matrices: Muon's (muon.cpp)
// and Adafactor's (adafactor.cpp).

// Writes the part of Muon's update that is not element-wise (Jordan 2024; Liu et al. 2025, 2502.16982, section
// 2.2.2): layer by layer, every data rank orthogonalizes the momentum of its share of the matrices, each of them
// whole. Ranks that hold whole states pass the results on (an all-gather, wΨ bytes: w bytes for each of Ψ elements);
// ranks that hold shards send each matrix' pieces to the rank that orthogonalizes it, and get the results' pieces
// back (two all-to-alls of wΨ/N on N ranks). Returns the tasks that the update must wait for.
std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after);

// Writes the two passes that Adafactor (Shazeer and Stern 2018, 1804.04235, algorithm 4) takes before it can update an
// element: the sums of the squares of rows and columns, and the root mean square of the update, which is limited. Ranks
// that hold shards of a matrix add up their parts of both results. Returns the tasks that the update must wait for.
std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after);

}  // namespace orrery
