#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "sim/parallel/workers.h"
#include "sim/search/expand.h"

namespace orrery {

// What layouts are told apart by: where a rank's weights, tokens and sequences lie.
using SearchSite = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
inline SearchSite site_of(const Degrees& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

// A first look at a space: which layouts are likely to be good, so that a search soon has something to measure others
// by. It rules nothing out.

// One layout of each site but those with very long rings, of those with the least micro-batch the one whose bound is
// least. nodes: of layouts that are possible.
std::vector<SearchNode> one_of_each_site(const std::vector<Degrees>& layouts, const std::vector<SearchNode>& nodes);

// A layout, or a point of it, and the room that is looked for.
struct Likely {
  SearchNode node;
  Bytes room = 0;
};
struct LookedAt {
  const Space& space;
  const std::vector<Degrees>& layouts;
  const SearchOptions& options;
};

// Of each layout's strategies with a plain schedule, whole groups of replicas and nothing on the host: one whose bound,
// played, is least and has that room. The most likely layouts first; those without one are left out. bounds: of each of
// the crew's threads.
std::vector<Likely> most_likely(const LookedAt& where, SearchCrew& crew,
                                const std::vector<std::unique_ptr<Bounds>>& bounds, const std::vector<Likely>& layouts);

}  // namespace orrery
