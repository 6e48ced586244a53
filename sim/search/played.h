#pragma once

#include "sim/search/bounds.h"

namespace orrery {

// Lower bounds found by running through the schedule's order with the least time of every action (a pass of one
// micro-batch).

// The lower bound of one strategy, found by running through the order of its schedule.
Bound played_bound(LayoutCosts& costs, const CellBounds& cell, const Features& features);

// Strategies that differ only in the layers that are recomputed (SearchFamily) have the same forward, event by event,
// until the first stage s begins a backward. Once one such strategy has been simulated, the others have the bound
//   step >= that moment + the work that s still has to do then + the time after that work.

// Whether strategies that differ only in the recomputed layers do the same until the first backward op.
bool forward_is_shared(const Spec& base, const MemoryPlan& memory_plan);
// Whether some stage begins backward with recomputed layers, whose recomputation needs no gradient.
bool runs_whole_stage_again(const CellWork& work);
// Lower bound of the time from the moment when `stage`, the first of all stages, begins a backward to the end of the
// step.
Picoseconds after_turn(LayoutCosts& costs, const CellBounds& cell, const Features& features, std::int64_t stage);

}  // namespace orrery
