#pragma once

#include "sim/search/bounds.h"

namespace orrery {

// This header has lower bounds found by timing the passes of a schedule in order, each with the least time that it can
// take.

// The lower bound of one strategy, found by timing the passes of its schedule in order.
Bound schedule_bound(LayoutCosts& costs, const CellBounds& cell, const Features& features);

// Strategies that differ only in the layers that are recomputed (SearchFamily) have the same forward, event by event,
// until the first stage s begins a backward, at a time t. Once one such strategy has been simulated, t is known, and
// every other one has the bound
//   step time >= t + the work that s still has to do then + the time after that work.

// Whether strategies that differ only in the recomputed layers run alike until the first backward op.
bool forward_is_shared(const Spec& base, const MemoryPlan& memory_plan);
// Whether some stage begins backward with recomputing all its layers, which needs no gradient.
bool runs_whole_stage_again(const CellWork& work);
// Lower bound of the time from the first backward pass of any stage, which runs on `stage`, to the end of the step.
Picoseconds after_turn(LayoutCosts& costs, const CellBounds& cell, const Features& features, std::int64_t stage);

}  // namespace orrery
