#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/parallel/workers.h"
#include "sim/search/expand.h"

namespace orrery {

// The parallel degrees by which a first look, and the list of the best strategies, tell RankLayouts apart: they decide
// which weights, tokens and sequences a rank has.
using SearchSite = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
inline SearchSite site_of(const RankLayout& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

// A first look at a space finds which parallel degrees are likely to be good, so that a search soon has a good strategy
// to compare others with. It rules nothing out.

// The strategies that a first look considers. whole_weights: each rank keeps the weights that it computes with, as
// optimizer sharding does and parameter sharding does not; on_device: any sharding; offloaded: optimizer states, or
// more, are offloaded.
enum class StatesLie : std::uint8_t { whole_weights, on_device, offloaded };

// A RankLayout to try first, and how its states are to be kept.
struct FirstGuess {
  std::size_t layout = 0;  // index in the list of RankLayouts
  StatesLie states = StatesLie::on_device;
};

// The few RankLayouts that practice would try first, the likeliest first. First come those with the fewest ranks of a
// replica whose weights, gradients and optimizer states probably leave enough of `room` bytes to activations; then
// others, whose parameters must be sharded; then these others once more with states offloaded. The guess takes no bound
// and no simulation, rules nothing out and serves to show some strategy at once; where no guess fits, the search goes
// on without one.
std::vector<FirstGuess> first_guesses(const Space& space, const std::vector<RankLayout>& layouts, Bytes room);

// One RankLayout for each combination of parallel degrees (SearchSite), except combinations with very many context
// ranks: among the RankLayouts with the smallest micro-batch the one whose bound is least. nodes: nodes of the
// RankLayouts that are possible.
std::vector<SearchNode> one_of_each_site(const std::vector<RankLayout>& layouts, const std::vector<SearchNode>& nodes);

// A RankLayout, or a strategy, and the bytes of memory (room) in which the strategy has to fit.
struct Likely {
  SearchNode node;
  Bytes room = 0;
};
struct LookedAt {
  const Space& space;
  const std::vector<RankLayout>& layouts;
  const SearchOptions& options;
  StatesLie states = StatesLie::on_device;
};

// The most likely strategy of each RankLayout: among the strategies with a plain schedule, sharding over all replicas
// and states kept as `where.states` says, one whose played_bound() is low and that fits in its `room`. The most likely
// come first; RankLayouts without such a strategy are left out. caches: one for each thread of the workers.
std::vector<Likely> most_likely(const LookedAt& where, SearchWorkers& workers,
                                const std::vector<std::unique_ptr<BoundCache>>& caches,
                                const std::vector<Likely>& layouts);

// The RankLayouts of the strategies in `found` that were simulated and did not fit (too_large: the bytes that they
// needed). Each comes with the memory that the bound of another of its strategies must not exceed, so that this
// strategy probably fits in `room`.
std::vector<Likely> leaner(const std::vector<Likely>& found, const std::map<SearchPlace, Bytes>& too_large, Bytes room);

// The first strategy of each combination of parallel degrees (SearchSite), at most `top` strategies.
std::vector<Found> best_of_each_site(std::vector<Found> sorted, std::size_t top);

}  // namespace orrery
