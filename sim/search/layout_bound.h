#pragma once

#include "sim/search/bound_cache.h"

namespace orrery {

// Lower bounds of the times of many strategies at once.

// A time below the bounds of all cells of the layout; 0 where no cell is possible.
Picoseconds layout_bound(LayoutCosts& costs);
// A time below layout_bound, shared by all layouts with as many tokens in a micro-batch: it leaves out the exchange
// between context ranks, and tokens attend to a few neighbours alone.
Picoseconds rough_bound(BoundCache& cache, const RankLayout& layout);
bool has_rough_bound(const Spec& base, const RankLayout& layout);
// A time below the bounds of all cells of the group.
Picoseconds group_bound(LayoutCosts& costs, const MemoryPlan& group);

}  // namespace orrery
