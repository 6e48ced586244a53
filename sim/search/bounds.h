#pragma once

#include <algorithm>

#include "sim/search/layout_bound.h"
#include "sim/search/memory_bound.h"
#include "sim/search/time_bound.h"

namespace orrery {

// Lower bounds of one strategy: the time of a simulated step, and the memory of the fullest rank. They are computed
// from costs that many strategies share: costs of layers (ModelCostCache), and transfers at a rate that NCCL never
// exceeds for their group of ranks.
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

inline CellBounds cell_bounds(LayoutCosts& costs, const MemoryPlan& memory_plan) {
  CellBounds cell{.work = cell_work(costs, memory_plan), .time = {}, .memory = {}};
  cell.time = time_bound(costs, cell.work);
  cell.memory = memory_bound(costs, cell.work);
  return cell;
}

// Lower bounds of step time and memory: of all strategies of the cell (one RankLayout and MemoryPlan), or of the one
// strategy with the given overlaps and order of ranks (Features).
inline Bound bound_of(const CellBounds& cell) { return {cell.time.least, cell.memory.least}; }
inline Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const PointTime& point) {
  return {std::max(cell.time.beside, point.on_device), memory_with(costs, cell.work, cell.memory, point.features)};
}
inline Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const Features& features) {
  return bound_of(costs, cell, point_time(costs, cell.work, cell.time, features));
}

}  // namespace orrery
