#include "sim/search/bounds.h"

#include <algorithm>

namespace orrery {

CellBounds cell_bounds(LayoutCosts& costs, const MemoryPlan& memory_plan) {
  CellBounds cell{.work = cell_work(costs, memory_plan), .time = {}, .memory = {}};
  cell.time = time_bound(costs, cell.work);
  cell.memory = memory_bound(costs, cell.work);
  return cell;
}

Bound bound_of(const CellBounds& cell) { return {cell.time.least, cell.memory.least}; }

Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const PointTime& point) {
  return {std::max(cell.time.beside, point.on_device), memory_with(costs, cell.work, cell.memory, point.features)};
}

Bound bound_of(LayoutCosts& costs, const CellBounds& cell, const Features& features) {
  return bound_of(costs, cell, point_time(costs, cell.work, cell.time, features));
}

}  // namespace orrery
