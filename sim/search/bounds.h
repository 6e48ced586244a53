#pragma once

#include "sim/search/layout_bound.h"
#include "sim/search/memory_bound.h"
#include "sim/search/time_bound.h"

namespace orrery {

// Lower bounds of one strategy: the time of a simulated step, and the memory of the fullest rank. They are computed
// from costs that many strategies share: costs of layers (StackCosts), and transfers at a rate that NCCL never exceeds
// for their group of ranks.
struct Bound {
  Picoseconds time = 0;
  Bytes memory = 0;
};

// The least work of all strategies with one RankLayout and one MemoryPlan (a cell; docs/model.md), and the lower bounds
// of step time and memory that follow from it.
struct CellBounds {
  CellWork work;
  TimeBound time;
  MemoryBound memory;
};

CellBounds cell_bounds(LayoutCosts& costs, const MemoryPlan& memory_plan);

// Lower bounds of step time and memory: of all strategies of the cell (one RankLayout and MemoryPlan), or of the one
// strategy with the given overlaps and order of ranks (Features).
Bound bound_of(const CellBounds& cell);
Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const PointTime& point);
Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const Features& features);

}  // namespace orrery
