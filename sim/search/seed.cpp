#include "sim/search/seed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Most groups of a layout that are looked into; and most ranks of a ring: the cost of a layer in a longer ring is slow
// to compute, with a transfer for each rank.
constexpr int kGroups = 6;
constexpr std::int64_t kContext = 64;

bool is_usual(const MemoryPlan& group) {
  const ShardingRow& row = row_of(group.sharding);
  return find_schedule(group.schedule).searched == Searched::first && group.offload == "none" && !row.hybrid &&
         (row.reshards_after_forward || !row.shards_gradients);
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

// Opens a node, then the part of the node with the least bound, and so on, down to a point whose order has been played.
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

std::optional<SearchNode> most_likely_of(const SearchOpener& opener, BoundCache& cache, SearchNode layout) {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  SearchCounts counts;
  Bytes least = 0;
  std::vector<SearchNode> groups{layout};
  while (!groups.empty() && groups.front().level != SearchLevel::group)
    groups = opener.parts_of(cache, groups.front(), limit, {counts, least});
  std::erase_if(groups, [](const SearchNode& group) { return !is_usual(group.what); });
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
    if (const auto node = most_likely_of(opener, *caches[worker], layouts[i].node)) seen[i].push_back(*node);
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

}  // namespace orrery
