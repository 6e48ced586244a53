#pragma once

#include "sim/search/bound_cache.h"

namespace orrery {

// Lower bounds of the step times of many strategies together.

// A lower bound of the step time of all strategies with these parallel degrees; 0 where no such strategy is possible.
Picoseconds layout_bound(LayoutCosts& costs);
// A lower bound of layout_bound(), which is fast to compute since parallel degrees with as many tokens in a rank's
// micro-batch share its costs: it leaves out the transfers between context ranks, and counts attention among a few
// neighbouring tokens only.
Picoseconds rough_bound(BoundCache& cache, const RankLayout& layout);
bool has_rough_bound(const Spec& base, const RankLayout& layout);
// A lower bound of the step time of all strategies of a group, which differ only in recomputation, offloaded
// activations, overlaps and order of ranks.
Picoseconds group_bound(LayoutCosts& costs, const MemoryPlan& group);

}  // namespace orrery
