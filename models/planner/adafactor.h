#pragma once

#include <vector>

#include "models/layout/draft.h"
#include "models/planner/task_writer.h"

namespace orrery {

// What Adafactor (Shazeer and Stern 2018, 1804.04235, algorithm 4) does before it can update an element: the sums of
// the squares of rows and columns, and the root mean square of the update, which is limited. Ranks with shards of a
// matrix add their parts of both up. Returns the tasks to wait for.
std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after);

}  // namespace orrery
