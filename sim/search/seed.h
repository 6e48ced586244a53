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

// The parallel degrees, which decide the weights, tokens and sequences that a rank has: (tensor, context, pipeline,
// data, expert). The first guesses, and the list of the best strategies, have one entry for each combination.
using SearchSite = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
inline SearchSite site_of(const RankLayout& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

// Before the search proper, a first look at the search space guesses which parallel degrees are good, so that the
// search soon has a good strategy to compare with. The first look rules nothing out.

// Which strategies the first look at the search space considers. whole_weights: each rank keeps the weights that it
// computes with, as optimizer sharding does and parameter sharding does not; on_device: any sharding, nothing
// offloaded; offloaded: optimizer states, or more, are offloaded.
enum class StatePlacement : std::uint8_t { whole_weights, on_device, offloaded };

// A RankLayout (parallel degrees) to try first, and where its weights, gradients and optimizer states are to be kept.
struct FirstGuess {
  std::size_t layout = 0;  // index in the list of RankLayouts
  StatePlacement states = StatePlacement::on_device;
};

// The few RankLayouts (parallel degrees) that practice would try first, likeliest first. First come those with the
// fewest ranks in a replica whose weights, gradients and optimizer states probably leave enough of `room` bytes for
// activations; then RankLayouts whose parameters must be sharded to fit; then these sharded RankLayouts once more with
// states offloaded. The guess computes no bound and rules nothing out, and serves to show some strategy soon; where no
// guess fits, the search goes on without one.
std::vector<FirstGuess> first_guesses(const Space& space, const std::vector<RankLayout>& layouts, Bytes room);

// Picks one RankLayout for each combination of parallel degrees (SearchSite), except combinations with very many
// context ranks: among the RankLayouts with the smallest micro-batch, the one with the least bound. nodes: the search
// nodes of all RankLayouts that are possible.
std::vector<SearchNode> one_of_each_site(const std::vector<RankLayout>& layouts, const std::vector<SearchNode>& nodes);

// A node of the search tree (all strategies of a RankLayout, or the likeliest one of them), and the bytes of GPU memory
// (room) that the memory bound of that likeliest strategy may reach.
struct Likely {
  SearchNode node;
  Bytes room = 0;
};
struct LookedAt {
  const Space& space;
  const std::vector<RankLayout>& layouts;
  const SearchOptions& options;
  StatePlacement states = StatePlacement::on_device;
};

// Finds for each RankLayout (parallel degrees) the strategy that is likeliest to be the best one with these degrees.
// Only strategies with a plain schedule, sharding over all replicas, and states kept as `where.states` says are
// considered; of these it is one with a low schedule_bound() whose memory bound is within `room`. The found strategies
// are sorted by their bounds, lowest first; RankLayouts without such a strategy are left out. caches: one for each
// thread of the workers.
std::vector<Likely> most_likely(const LookedAt& where, SearchWorkers& workers,
                                const std::vector<std::unique_ptr<BoundCache>>& caches,
                                const std::vector<Likely>& layouts);

// The RankLayouts (parallel degrees) in `found` whose strategy turned out, when simulated, not to fit in memory
// (too_large: the bytes that it needed). They are to be tried again with less room, the limit for the memory bound of a
// strategy, so that the next strategy probably needs at most `room` bytes when it is simulated.
std::vector<Likely> leaner(const std::vector<Likely>& found, const std::map<SearchPosition, Bytes>& too_large,
                           Bytes room);

// Picks the first (best) strategy for each combination of parallel degrees (SearchSite), and at most `top` strategies.
std::vector<Found> best_of_each_site(std::vector<Found> sorted, std::size_t top);

// Lists the RankLayouts (parallel degrees) that differ from one RankLayout in one choice, as search nodes: the tensor
// degree with what depends on it (sequence parallelism, overlap, tensor ranks of an expert), the context degree with
// its kind, the number of stages, the expert degree, the size of a micro-batch. A degree changes by a factor of four at
// most. The number of data ranks follows from the other degrees.
std::vector<SearchNode> nearby(const std::vector<RankLayout>& layouts, const RankLayout& from);

}  // namespace orrery
