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

// The degrees of parallelism by which layouts are told apart here: they say where a rank's weights, tokens and
// sequences lie.
using SearchSite = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
inline SearchSite site_of(const RankLayout& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

// A first look at a space: which layouts are likely to be good, so that a search soon has a good strategy to compare
// others with. It rules nothing out.

// The strategies that a first look considers. whole_weights: each rank keeps the weights that it computes with, as
// optimizer sharding does and parameter sharding does not; on_device: any sharding; offloaded: optimizer states, or
// more, leave the device.
enum class StatesLie : std::uint8_t { whole_weights, on_device, offloaded };

// A layout to try first, and where its states are to lie.
struct FirstGuess {
  std::size_t layout = 0;  // its place in the list
  StatesLie states = StatesLie::on_device;
};

// The few layouts that practice would try first, the likeliest first: with the fewest ranks of a model among those
// whose weights, gradients and optimizer states probably leave enough of `room` bytes to activations, then others, of
// which parameters must be sharded, and these once more with states offloaded. The guess takes no bound and no
// simulation, rules nothing out and serves to show some strategy at once; where all guesses miss, a search goes on
// without.
std::vector<FirstGuess> first_guesses(const Space& space, const std::vector<RankLayout>& layouts, Bytes room);

// One layout of each combination of degrees (SearchSite), except those with very long rings of ranks: among the layouts
// with the smallest micro-batch the one whose bound is least. nodes: the layouts that are possible.
std::vector<SearchNode> one_of_each_site(const std::vector<RankLayout>& layouts, const std::vector<SearchNode>& nodes);

// A layout, or a strategy of a layout, and the memory within which the strategy has to fit.
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

// The most likely strategy of each layout: among the strategies with a plain schedule, sharding over all replicas and
// nothing offloaded, one whose played bound is least and that fits in the layout's `room`. The most likely layouts come
// first; layouts without such a strategy are left out. caches: one for each thread of the workers.
std::vector<Likely> most_likely(const LookedAt& where, SearchWorkers& workers,
                                const std::vector<std::unique_ptr<BoundCache>>& caches,
                                const std::vector<Likely>& layouts);

// The layouts of the strategies in `found` that were simulated and did not fit (too_large: the bytes that they took),
// each with the memory within which the bound of another strategy of it must stay so that it probably fits in `room`.
std::vector<Likely> leaner(const std::vector<Likely>& found, const std::map<SearchPlace, Bytes>& too_large, Bytes room);

// The first of each combination of degrees, `top` of them at most.
std::vector<Found> best_of_each_site(std::vector<Found> sorted, std::size_t top);

}  // namespace orrery
