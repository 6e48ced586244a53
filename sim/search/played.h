#pragma once

#include "sim/search/bounds.h"

namespace orrery {

// Bounds that know the order of the schedule, in which every action takes the least time.

// The bound of a point with the order of the schedule played.
Bound played_bound(LayoutCosts& costs, const CellBounds& cell, const Features& features);

// Strategies of one family differ only in the layers that run again in backward. Once one of them has been simulated,
// all of the family are known to have the same forward, event by event, until the first stage s turns to backward:
//   step >= turn + work(s) that the order leaves after the turn + the time behind that work.

// Whether points that differ only in the layers that run again do the same before their first backward op.
bool forward_is_shared(const Spec& base, const MemoryPlan& memory_plan);
// Whether some stage of the cell begins backward with layers that run again, which waits for no gradient.
bool runs_whole_stage_again(const CellWork& work);
// Lower bound of the time from the moment when `stage`, the first of all stages, begins backward, to the end of the
// step.
Picoseconds after_turn(LayoutCosts& costs, const CellBounds& cell, const Features& features, std::int64_t stage);

}  // namespace orrery
