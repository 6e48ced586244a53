#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "sim/parallel/workers.h"
#include "sim/search/expand.h"

namespace orrery {

// The degrees by which layouts are told apart: they say where the weights, tokens and sequences of a rank lie.
using SearchSite = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
inline SearchSite site_of(const RankLayout& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

// A first look at a space: which layouts are likely to be good, so that a search soon has something to measure others
// by. It rules nothing out.

// One layout of each site, except sites with very long rings: among the layouts with the smallest micro-batch the one
// whose bound is least. nodes: the layouts that are possible.
std::vector<SearchNode> one_of_each_site(const std::vector<RankLayout>& layouts, const std::vector<SearchNode>& nodes);

// A layout, or a point of a layout, and the memory that it is looked for in.
struct Likely {
  SearchNode node;
  Bytes room = 0;
};
struct LookedAt {
  const Space& space;
  const std::vector<RankLayout>& layouts;
  const SearchOptions& options;
};

// The most likely strategy of each layout: among the strategies with a plain schedule, whole groups of replicas and
// nothing on the host, one whose played bound is least and that has the layout's room. The most likely layouts come
// first; layouts without such a strategy are left out. caches: one for each thread of the workers.
std::vector<Likely> most_likely(const LookedAt& where, SearchWorkers& workers,
                                const std::vector<std::unique_ptr<BoundCache>>& caches,
                                const std::vector<Likely>& layouts);

}  // namespace orrery
