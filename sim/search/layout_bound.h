#pragma once

#include "sim/search/bound_cache.h"

namespace orrery {

// Lower bounds of the times of many strategies at once.

// A lower bound of the step time of all strategies of the rank layout; 0 where none is possible.
Picoseconds layout_bound(LayoutCosts& costs);
// A lower bound of layout_bound, shared by all layouts with as many tokens in a micro-batch: it leaves out the
// transfers between context ranks, and counts attention to a few neighbours only.
Picoseconds rough_bound(BoundCache& cache, const RankLayout& layout);
bool has_rough_bound(const Spec& base, const RankLayout& layout);
// A lower bound of the step time of all strategies of a group, which differ only in recomputation and overlaps.
Picoseconds group_bound(LayoutCosts& costs, const MemoryPlan& group);

}  // namespace orrery
