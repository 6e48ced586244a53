#pragma once

#include <cstdint>

#include "models/layout/draft.h"
#include "models/tasks/matches.h"

namespace orrery {

// Returns whether two kinds of ranks (indices in Draft::kinds) do the same work on every pipeline stage, so that their
// classes differ only in the ranks that belong to them: kinds that slow ranks alone tell apart (cluster.stragglers).
bool do_the_same(const Draft& draft, int kind, int other);

// Adds to the plan the class of ranks that Draft::at names, as a copy of the class with index `of`, whose ranks are of
// the same pipeline stage and do the same work: its frames, tasks, dependencies and ends of transfers, with new ids.
// Gives the same plan as laying the class out and writing its tasks, in less time.
void copy_class(Draft& draft, TransferEnds& ends, std::uint32_t of);

}  // namespace orrery
