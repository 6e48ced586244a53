#pragma once

#include "sim/search/bound_cache.h"

namespace orrery {

// This header has lower bounds of the step time of many strategies together.

// A lower bound of the step time of all strategies with these parallel degrees; 0 where no such strategy is possible.
Picoseconds layout_bound(LayoutCosts& costs);
// A lower bound of layout_bound() that is fast to compute: it leaves out the transfers between context ranks and counts
// attention among a few neighbouring tokens only, so that all parallel degrees with the same number of tokens in a
// rank's micro-batch have the same costs.
Picoseconds rough_bound(BoundCache& cache, const RankLayout& layout);
bool has_rough_bound(const Spec& base, const RankLayout& layout);
// A lower bound of the step time of all strategies of a group, which differ only in recomputation, offloaded
// activations, overlaps and order of ranks.
Picoseconds group_bound(LayoutCosts& costs, const MemoryPlan& group);

}  // namespace orrery
