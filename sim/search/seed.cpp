#include "sim/search/seed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

constexpr std::size_t kGuesses = 4;  // RankLayouts (parallel degrees) to try first, for each value of StatePlacement

// If weights, gradients and optimizer states take no more than this share of a GPU's memory, activations and buffers
// probably fit too.
constexpr double kStatesShare = 0.75;

// Numbers of a model's weights (elements). dense: those that tensor and pipeline ranks divide among them; experts:
// those that expert, expert-tensor and pipeline ranks divide among them.
struct Weights {
  double dense = 0, experts = 0;
};

Weights weights_of(const Model& m, std::int64_t sequence) {
  Weights sum;
  const auto add = [&](const std::vector<Parameter>& parameters) {
    for (const Parameter& p : parameters) (p.experts > 0 ? sum.experts : sum.dense) += static_cast<double>(elements(p));
  };
  add(embedding_parameters(m, sequence));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) add(layer_parameters(m, layer));
  add(head_parameters(m));
  return sum;
}

// Bytes of states on a rank in mixed precision with optimizer states sharded over replicas: 2 + 4 bytes for a weight
// and its gradient, 12 for its master weight and moments (Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1).
double states_of(const Weights& w, const RankLayout& l) {
  const double cut = static_cast<double>(l.tensor * l.pipeline);
  const double expert_cut = static_cast<double>(l.expert * l.expert_tensor * l.pipeline);
  const double ranks = static_cast<double>(l.tensor * l.replicas() * l.pipeline);
  const double dense = w.dense / cut, experts = w.experts / expert_cut;
  return dense * (6 + 12 * cut / ranks) + experts * (6 + 12 * std::min(1.0, expert_cut / ranks));
}

// The key by which RankLayouts (parallel degrees) are sorted, those first that are likeliest to be the best. It holds
// what is kept small in practice, most important first: size of a micro-batch, tensor ranks beyond a node, context
// ranks, expert ranks beyond a node, ranks of a replica; then figures that only make the order complete.
auto preference(const Space& space, const RankLayout& l) {
  const std::int64_t node = space.base().cluster.gpus_per_node;
  const bool far_experts = l.expert * l.expert_tensor > node;
  return std::tuple(l.micro_batch, l.tensor > node, l.context, far_experts, l.tensor * l.pipeline, l.expert_tensor,
                    l.pipeline, -l.expert, !l.sequence_parallel, l.overlap_tensor, l.overlap_expert);
}

// Collects, of the RankLayouts (parallel degrees) given to add(), those that are likeliest to be the best, at most
// kGuesses of them. A RankLayout's preference() is computed once, because there may be millions of RankLayouts.
class Likeliest {
 public:
  void add(const Space& space, const RankLayout& layout, std::size_t index) {
    Key key(preference(space, layout), index);
    if (best_.size() == kGuesses && !(key < best_.top())) return;
    best_.push(std::move(key));
    if (best_.size() > kGuesses) best_.pop();
  }
  // Returns the indices of the collected RankLayouts, the likeliest to be the best first; the collection is then empty.
  std::vector<std::size_t> take() {
    std::vector<std::size_t> indices;
    for (; !best_.empty(); best_.pop()) indices.push_back(best_.top().second);
    std::ranges::reverse(indices);
    return indices;
  }

 private:
  using Key = std::pair<decltype(preference(std::declval<Space>(), std::declval<RankLayout>())), std::size_t>;
  std::priority_queue<Key> best_;
};

}  // namespace

std::vector<FirstGuess> first_guesses(const Space& space, const std::vector<RankLayout>& layouts, Bytes room) {
  const Spec& base = space.base();
  const Weights weights = weights_of(base.model, base.sequence);
  const double most = kStatesShare * static_cast<double>(room);
  Likeliest roomy, others;
  const auto degrees = [](const RankLayout& l) {
    return std::tuple(l.tensor, l.pipeline, l.data, l.context, l.expert, l.expert_tensor);
  };
  // whether weights, gradients and optimizer states fit in memory with the parallel degrees of layouts[i]; computed
  // again only when the degrees change, since many layouts in succession have the same degrees
  bool has_room = false;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i == 0 || degrees(layouts[i]) != degrees(layouts[i - 1])) has_room = states_of(weights, layouts[i]) <= most;
    (has_room ? roomy : others).add(space, layouts[i], i);
  }
  std::vector<FirstGuess> first;
  for (const std::size_t i : roomy.take()) first.push_back({i, StatePlacement::whole_weights});
  const std::vector<std::size_t> tight = others.take();
  for (const StatePlacement states : {StatePlacement::on_device, StatePlacement::offloaded}) {
    for (const std::size_t i : tight) first.push_back({i, states});
  }
  return first;
}

namespace {

// kGroups: number of groups of memory plans that are tried for each RankLayout; the plans of a group differ only in
// recomputation and offloaded activations. kContext: RankLayouts with more context ranks are not tried, since a ring of
// so many ranks has a transfer for each, which makes the cost of a layer slow to compute.
constexpr int kGroups = 6;
constexpr std::int64_t kContext = 64;

bool is_usual(const MemoryPlan& group, StatePlacement states) {
  const ShardingRow& row = row_of(group.sharding);
  if (states == StatePlacement::whole_weights && row.shards_parameters) return false;
  const bool stay = group.offload == "none";
  return find_schedule(group.schedule).searched == Searched::first && stay == (states != StatePlacement::offloaded) &&
         !row.hybrid && (row.reshards_after_forward || !row.shards_gradients);
}

}  // namespace

std::vector<SearchNode> one_of_each_site(const std::vector<RankLayout>& layouts, const std::vector<SearchNode>& nodes) {
  std::map<SearchSite, const SearchNode*> chosen;
  for (const SearchNode& node : nodes) {
    if (layouts[node.layout].context > kContext) continue;
    const SearchNode*& best = chosen[site_of(layouts[node.layout])];
    const auto rank = [&](const SearchNode& n) { return std::pair(layouts[n.layout].micro_batch, n.value); };
    if (best == nullptr || rank(node) < rank(*best)) best = &node;
  }
  std::vector<SearchNode> result;
  result.reserve(chosen.size());
  for (const auto& [site, node] : chosen) result.push_back(*node);
  return result;
}

namespace {

// Splits a node of the search tree, then the part with the least bound, and so on, down to one strategy with its
// schedule_bound().
std::optional<SearchNode> down_from(const SearchOpener& opener, BoundCache& cache, SearchNode node,
                                    std::int64_t limit) {
  SearchCounts counts;
  Bytes least = 0;
  while (node.level != SearchLevel::replayed) {
    std::vector<SearchNode> parts = opener.parts_of(cache, node, limit, {counts, least});
    const bool ends = node.level == SearchLevel::cell;
    std::erase_if(parts, [&](const SearchNode& part) {
      return part.what.activations != "none" || (ends && part.level == SearchLevel::cell);
    });
    if (parts.empty()) return std::nullopt;
    node = *std::min_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return b > a; });
  }
  return node;
}

std::optional<SearchNode> most_likely_of(const SearchOpener& opener, BoundCache& cache, SearchNode layout,
                                         StatePlacement states) {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  SearchCounts counts;
  Bytes least = 0;
  std::vector<SearchNode> groups{layout};
  while (!groups.empty() && groups.front().level != SearchLevel::group)
    groups = opener.parts_of(cache, groups.front(), limit, {counts, least});
  std::erase_if(groups, [&](const SearchNode& group) { return !is_usual(group.what, states); });
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return b > a; });
  std::optional<SearchNode> best;
  for (std::size_t g = 0; g < groups.size() && g < kGroups; ++g) {
    if (groups[g].value > limit) break;
    const auto found = down_from(opener, cache, groups[g], limit);
    if (!found) continue;
    best = found;
    limit = std::min(limit, found->value - 1);
  }
  return best;
}

}  // namespace

std::vector<Likely> most_likely(const LookedAt& where, SearchWorkers& workers,
                                const std::vector<std::unique_ptr<BoundCache>>& caches,
                                const std::vector<Likely>& layouts) {
  std::vector<std::vector<SearchNode>> seen(layouts.size());
  const auto look = [&](std::size_t worker, std::size_t i) {
    if (workers.hurries()) return;
    const SearchOpener opener(where.space, where.layouts, where.options, layouts[i].room);
    if (const auto node = most_likely_of(opener, *caches[worker], layouts[i].node, where.states))
      seen[i].push_back(*node);
  };
  const auto pass = [&](Wire& wire, std::size_t i) { share_all(wire, seen[i]); };
  workers.each(
      layouts.size(), look, [&](std::size_t i) { return where.layouts[layouts[i].node.layout].context; }, pass);
  std::vector<Likely> found;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (!seen[i].empty()) found.push_back({seen[i].front(), layouts[i].room});
  }
  std::sort(found.begin(), found.end(), [](const Likely& a, const Likely& b) { return b.node > a.node; });
  return found;
}

std::vector<Likely> leaner(const std::vector<Likely>& found, const std::map<SearchPosition, Bytes>& too_large,
                           Bytes room) {
  // For strategies with the same parallel degrees, the ratio of memory bound to simulated memory is nearly the same.
  // kMargin leaves room for the small differences of this ratio.
  constexpr double kMargin = 0.99;
  std::vector<Likely> again;
  for (const Likely& s : found) {
    const auto peak = too_large.find(s.node.place());
    if (peak == too_large.end()) continue;
    const double told = static_cast<double>(s.node.bound.memory) / static_cast<double>(peak->second);
    const auto less = static_cast<Bytes>(told * kMargin * static_cast<double>(room));
    if (less < s.room) again.push_back({{.layout = s.node.layout, .level = SearchLevel::layout}, less});
  }
  return again;
}

std::vector<Found> best_of_each_site(std::vector<Found> sorted, std::size_t top) {
  std::vector<Found> kept;
  for (Found& found : sorted) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const Found& other) {
      return site_of(other.point.layout) == site_of(found.point.layout);
    });
    if (!seen && kept.size() < top) kept.push_back(std::move(found));
  }
  return kept;
}

namespace {

bool is_far(std::int64_t a, std::int64_t b) { return std::max(a, b) > 4 * std::min(a, b); }

bool is_near(const RankLayout& a, const RankLayout& b) {
  const auto tensor = [](const RankLayout& l) {
    return std::tuple(l.tensor, l.sequence_parallel, l.overlap_tensor, l.expert_tensor);
  };
  const int differ = int{tensor(a) != tensor(b)} + int{a.pipeline != b.pipeline} +
                     int{a.context != b.context || a.context_kind != b.context_kind} +
                     int{a.expert != b.expert || a.overlap_expert != b.overlap_expert} +
                     int{a.micro_batch != b.micro_batch};
  return differ == 1 && !is_far(a.tensor, b.tensor) && !is_far(a.pipeline, b.pipeline) &&
         !is_far(a.context, b.context) && !is_far(a.expert, b.expert) && !is_far(a.micro_batch, b.micro_batch);
}

}  // namespace

std::vector<SearchNode> nearby(const std::vector<RankLayout>& layouts, const RankLayout& from) {
  std::vector<SearchNode> result;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (is_near(layouts[i], from))
      result.push_back({.layout = static_cast<std::uint32_t>(i), .level = SearchLevel::layout});
  }
  return result;
}

}  // namespace orrery
