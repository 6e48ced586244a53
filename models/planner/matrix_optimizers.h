#pragma once

#include <vector>

#include "models/layout/draft.h"
#include "models/tasks/task_writer.h"

namespace orrery {

// This header has the parts of optimizer updates that are not element-wise and need whole matrices: Muon's (muon.cpp)
// and Adafactor's (adafactor.cpp).

// Writes the part of Muon's update that is not element-wise (Jordan 2024; Liu et al. 2025, 2502.16982, section 2.2.2).
// Layers of the same shape are orthogonalized in rounds: in each, every one of the N data-parallel ranks works on one
// layer, whose matrices it has whole. Ranks that hold whole states pass the orthogonalized layers on (a broadcast of
// each, wΨ bytes in all: w bytes for each of Ψ elements of layers). Ranks that hold shards send each layer's pieces to
// the rank that orthogonalizes it, and get the results' pieces back (two all-to-alls of wΨ/N). Tensor-parallel ranks
// gather the parts of the layer's matrices that the others have (wΨ/N on each), and compute the same. Returns the tasks
// that the update must wait for.
std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after);

// Writes the two passes that Adafactor (Shazeer and Stern 2018, 1804.04235, algorithm 4) takes before it can update an
// element: the sums of squares of each matrix' rows and columns, and the norms of each tensor's update, which is
// clipped, and of its weights, to which the step is proportional. Where ranks hold parts of a tensor, these numbers,
// which are few, are all-reduced in fp32. Returns the tasks that the update must wait for.
std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after);

}  // namespace orrery
