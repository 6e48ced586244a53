#include "sim/search/expand.h"

#include <algorithm>
#include <optional>

#include "sim/search/schedule_bound.h"

namespace orrery {
namespace {

// Whether two memory plans differ only in the number of recomputed layers.
bool are_of_a_kind(const MemoryPlan& a, const MemoryPlan& b) {
  return a.recompute == b.recompute && a.activations == b.activations && a.activation_layers == b.activation_layers;
}

}  // namespace

std::vector<SearchNode> SearchOpener::parts_of(BoundCache& cache, const SearchNode& node, Tally tally) const {
  LayoutCosts costs(cache, layouts_[node.layout]);
  switch (node.level) {
    case SearchLevel::rough_layout:
      return without_rough(costs, node);
    case SearchLevel::layout:
      return groups_of(costs, node, tally);
    case SearchLevel::group:
      return cells_of(costs, node, tally);
    case SearchLevel::cell:
      return points_of(costs, node, tally);
    case SearchLevel::point:
      return bound_by_schedule(costs, node, tally);
    case SearchLevel::replayed:
      break;
  }
  return {};
}

std::vector<SearchNode> SearchOpener::bound_by_schedule(LayoutCosts& costs, SearchNode node, Tally tally) const {
  const CellBounds cell = cell_bounds(costs, node.what);
  node.level = SearchLevel::replayed;
  const bool room = make_room(costs, cell, node, true);
  node.value = std::max(node.value, value_of(node.bound));
  if (node.value > tally.limit) return {};
  return room ? std::vector{node} : with_offload_instead(cell.work, node, tally);
}

// The strategies to try instead of a strategy that does not fit in memory: the same strategy with offloaded
// activations. The search adds these here because its lists leave out offloaded activations wherever the memory bound
// says that the strategy fits without (defers_offload()).
std::vector<SearchNode> SearchOpener::with_offload_instead(const CellWork& cell, const SearchNode& point,
                                                           Tally tally) const {
  ++tally.counts.without_room;
  if (options_.objective != SearchObjective::time || !frees_memory(cell)) return {};
  return with_activations_away(point);
}

// Computes the lower bounds of one strategy and returns whether the strategy fits in GPU memory. Where the number of
// layers with offloaded activations is left open, raises it until the strategy fits. plays: whether to use
// schedule_bound().
bool SearchOpener::make_room(LayoutCosts& costs, const CellBounds& cell, SearchNode& point, bool plays) const {
  const auto bound = [&](const CellBounds& bounded) {
    point.bound = plays ? schedule_bound(costs, bounded, point.features) : bound_of(costs, bounded, point.features);
  };
  bound(cell);
  while (point.bound.memory > room_ && point.bound.memory < kNoRoom) {
    const std::optional<SearchNode> more = with_one_more(point);
    if (!more) return false;
    point.what = more->what;
    bound(cell_bounds(costs, point.what));
  }
  return point.bound.memory <= room_;
}

std::optional<SearchNode> SearchOpener::with_one_more(const SearchNode& point) const {
  if (!point.as_needed) return std::nullopt;
  const RankLayout& layout = layouts_[point.layout];
  if (point.what.activation_layers >= space_.fullest_stage(layout.pipeline, point.what)) return std::nullopt;
  SearchNode more = point;
  ++more.what.activation_layers;
  more.level = SearchLevel::point;
  return more;
}

bool SearchOpener::stays(const MemoryPlan& what) const {
  return (what.activations == "none" || !space_.keeps_activations()) &&
         (what.offload == "none" || !space_.keeps_states());
}

SearchFamily SearchOpener::family_of(const SearchNode& n) const {
  const MemoryPlan& w = n.what;
  const std::string_view states = space_.keeps_states() ? "none" : w.offload;
  return {n.layout, w.schedule, w.virtual_stages, w.sharding, w.shard_group, n.feature, states};
}

std::optional<SearchNode> SearchOpener::where_all_stays(const SearchNode& node) const {
  const SearchFamily family = family_of(node);
  const std::vector<MemoryPlan> groups = space_.groups(layouts_[node.layout]);
  SearchNode other = node;
  other.as_needed = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (space_.keeps_states() && groups[g].offload != "none") continue;
    other.what = groups[g];
    if (family_of(other) != family) continue;
    other.group = static_cast<std::int32_t>(g);
    other.cell = 0;
    other.what = space_.cells_of(layouts_[node.layout], groups[g]).front();
    if (stays(other.what)) return other;
  }
  return std::nullopt;
}

std::vector<SearchNode> SearchOpener::with_activations_away(const SearchNode& point) const {
  std::vector<SearchNode> result;
  if (point.what.activations != "none" || !space_.leaves_activations()) return result;
  MemoryPlan group = point.what;
  group.recompute = "none";
  group.recompute_layers = -1;
  const std::vector<MemoryPlan> cells = space_.cells_of(layouts_[point.layout], group);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool same =
        cells[c].recompute == point.what.recompute && cells[c].recompute_layers == point.what.recompute_layers;
    if (!same || cells[c].activation_layers != kAsNeeded) continue;
    SearchNode away = point;
    away.level = SearchLevel::point;
    away.cell = static_cast<std::int32_t>(c);
    away.what = cells[c];
    away.what.activation_layers = 1;
    away.as_needed = true;
    result.push_back(away);
  }
  return result;
}

std::vector<SearchNode> SearchOpener::with_more_away(const SearchNode& point) const {
  std::vector<SearchNode> result;
  if (options_.objective == SearchObjective::time) result = with_activations_away(point);
  if (const auto more = with_one_more(point)) result.push_back(*more);
  return result;
}

// The least number of layers of a stage whose activations must be offloaded for the memory bound to fit in the GPU's
// memory.
std::int64_t SearchOpener::layers_needed(LayoutCosts& costs, MemoryPlan cell) const {
  std::int64_t few = 1, enough = space_.fullest_stage(costs.layout.pipeline, cell);
  while (few < enough) {
    const std::int64_t middle = cell.activation_layers = few + (enough - few) / 2;
    if (memory_bound(costs, cell_work(costs, cell)).on_device > room_)
      few = middle + 1;
    else
      enough = middle;
  }
  return enough;
}

// The search node `node` with the stricter layout_bound() in place of its rough_bound(); an empty list where no
// strategy with its parallel degrees is possible.
std::vector<SearchNode> SearchOpener::without_rough(LayoutCosts& costs, SearchNode node) const {
  node.level = SearchLevel::layout;
  node.bound = {.time = layout_bound(costs)};
  if (node.bound.time == 0) return {};
  node.value = std::max(node.value, value_of(node.bound));
  return {node};
}

// Splits the strategies of one RankLayout (parallel degrees) into groups that differ only in recomputation and
// offloaded activations. No strategy of a group is faster than the one without recomputation; others may need less
// memory.
std::vector<SearchNode> SearchOpener::groups_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const {
  std::vector<SearchNode> result;
  const std::vector<MemoryPlan> groups = space_.groups(layouts_[node.layout]);
  for (std::size_t g = 0; g < groups.size() && !hurries(); ++g) {
    if (!is_possible(costs, groups[g])) continue;
    SearchNode next{
        .value = node.value, .layout = node.layout, .group = static_cast<std::int32_t>(g), .what = groups[g]};
    next.level = SearchLevel::group;
    next.bound = {.time = group_bound(costs, groups[g])};
    if (options_.objective == SearchObjective::time) next.value = std::max(node.value, next.bound.time);
    ++tally.counts.bounded;
    if (next.value <= tally.limit) result.push_back(next);
  }
  return result;
}

std::vector<SearchNode> SearchOpener::cells_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const {
  std::vector<SearchNode> result;
  const std::vector<MemoryPlan> cells = space_.cells_of(layouts_[node.layout], node.what);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool first = c == 0 || !are_of_a_kind(cells[c], cells[c - 1]);
    if (first || options_.objective == SearchObjective::memory) add_cell(costs, node, cells, c, tally, result);
  }
  return result;
}

// The index of the first memory plan in cells[c] to cells[end - 1] that fits in memory by its bound; `end` where none
// does. These memory plans differ only in how many layers are recomputed. Where recomputing more layers never needs
// more memory, the index is found by bisection.
std::size_t SearchOpener::first_with_room(LayoutCosts& costs, const std::vector<MemoryPlan>& cells, std::size_t c,
                                          std::size_t end, Tally tally) const {
  const auto lacks_room = [&](const CellWork& work) {
    const Bytes memory = memory_bound(costs, work).least;
    ++tally.counts.bounded;
    if (memory < kNoRoom && (tally.least == 0 || memory < tally.least)) tally.least = memory;
    return memory > room_;
  };
  const auto cell_lacks_room = [&](const MemoryPlan& cell) { return lacks_room(cell_work(costs, cell)); };
  const CellWork work = cell_work(costs, cells[c]);
  if (!lacks_room(work)) return c;
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(c),
             last = cells.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found = frees_memory(work) ? std::partition_point(first + 1, last, cell_lacks_room)
                                        : std::find_if_not(first + 1, last, cell_lacks_room);
  tally.counts.without_room += static_cast<std::uint64_t>(found - first);
  return static_cast<std::size_t>(found - cells.begin());
}

// Whether the search leaves out a memory plan with offloaded activations at first, because the same plan without
// offload fits by its memory bound. If a simulation then shows that the plan without offload does not fit,
// with_offload_instead() adds the plan with offload.
bool SearchOpener::defers_offload(LayoutCosts& costs, MemoryPlan cell) const {
  if (!space_.keeps_activations()) return false;
  cell.activations = "none";
  cell.activation_layers = -1;
  const CellWork stays = cell_work(costs, cell);
  return memory_bound(costs, stays).least <= room_ && frees_memory(stays);
}

// Adds a search node for memory plan cells[c] if that fits by its memory bound. In a search for the least time, adds
// instead a node for the first plan from cells[c] on that fits and differs from cells[c] only in recomputing more
// layers; it stands also for the plans after it, which recompute still more.
void SearchOpener::add_cell(LayoutCosts& costs, const SearchNode& node, const std::vector<MemoryPlan>& cells,
                            std::size_t c, Tally tally, std::vector<SearchNode>& result) const {
  const bool time = options_.objective == SearchObjective::time;
  if (!is_possible(costs, cells[c])) return;
  std::size_t end = c + 1;
  while (time && end < cells.size() && are_of_a_kind(cells[end], cells[c])) ++end;
  const std::size_t i = first_with_room(costs, cells, c, end, tally);
  if (i == end) return;
  SearchNode next = node;
  next.level = SearchLevel::cell;
  next.cell = static_cast<std::int32_t>(i);
  next.what = cells[i];
  next.as_needed = cells[i].activation_layers == kAsNeeded;
  if (next.as_needed && time && defers_offload(costs, next.what)) return;
  if (next.as_needed && !time) return add_each_number(costs, next, tally, result);
  if (next.as_needed) next.what.activation_layers = layers_needed(costs, next.what);
  const CellBounds cell = cell_bounds(costs, next.what);
  next.bound = bound_of(cell);
  next.floor = node.level == SearchLevel::group ? node.value : node.floor;
  const std::optional<Picoseconds> fall = time ? may_fall(cell.work) : 0;
  const auto at_least = [&](std::int64_t value) { return std::max(next.value, fall ? value - *fall : 0); };
  next.value = next.floor;
  next.value = at_least(time ? cell.time.on_device : next.bound.memory);
  if (time && next.value <= tally.limit) next.value = at_least(least_of_points(costs, cell));
  if (next.value <= tally.limit) result.push_back(next);
}

// The least time bound of any strategy with this memory plan (a cell), computed as if activations stayed on the device.
Picoseconds SearchOpener::least_of_points(LayoutCosts& costs, const CellBounds& cell) const {
  std::optional<Picoseconds> least;
  for (const Features& features : space_.features(costs.layout, cell.work.cell.memory_plan)) {
    const Picoseconds time = point_time(costs, cell.work, cell.time, features).on_device;
    least = std::min(least.value_or(time), time);
  }
  return least.value_or(0);
}

// For searches for the least memory: adds a search node for each number of layers whose activations may be offloaded.
void SearchOpener::add_each_number(LayoutCosts& costs, SearchNode cell, Tally tally,
                                   std::vector<SearchNode>& result) const {
  cell.as_needed = false;
  const std::int64_t most = space_.fullest_stage(costs.layout.pipeline, cell.what);
  for (cell.what.activation_layers = 1; cell.what.activation_layers <= most; ++cell.what.activation_layers) {
    cell.bound = bound_of(cell_bounds(costs, cell.what));
    cell.value = std::max(cell.floor, cell.bound.memory);
    ++tally.counts.bounded;
    if (cell.bound.memory <= room_ && cell.value <= tally.limit) result.push_back(cell);
  }
}

std::vector<SearchNode> SearchOpener::points_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const {
  const RankLayout& layout = costs.layout;
  std::vector<SearchNode> result;
  if (options_.objective == SearchObjective::time) {
    MemoryPlan group = node.what;
    group.recompute = "none";
    group.recompute_layers = group.activation_layers = -1;
    group.activations = "none";
    const std::vector<MemoryPlan> cells = space_.cells_of(layout, group);
    const std::size_t after = static_cast<std::size_t>(node.cell) + 1;
    if (after < cells.size() && are_of_a_kind(cells[after], cells[after - 1]))
      add_cell(costs, node, cells, after, tally, result);
  }
  const CellBounds cell = cell_bounds(costs, node.what);
  const std::vector<Features> all = space_.features(layout, node.what);
  for (std::size_t f = 0; f < all.size(); ++f) {
    SearchNode next = node;
    next.level = layout.pipeline > 1 ? SearchLevel::point : SearchLevel::replayed;
    next.feature = static_cast<std::int32_t>(f);
    next.features = all[f];
    const bool room = make_room(costs, cell, next, false);
    next.value = std::max(node.value, value_of(next.bound));
    ++tally.counts.bounded;
    if (next.value > tally.limit) continue;
    const std::vector<SearchNode> found = room ? std::vector{next} : with_offload_instead(cell.work, next, tally);
    result.insert(result.end(), found.begin(), found.end());
  }
  return result;
}

std::vector<SearchNode> SearchOpener::parts_of(BoundCache& cache, const SearchNode& node, std::int64_t limit,
                                               Found found) const {
  return parts_of(cache, node, Tally{found.counts, found.least, limit});
}

}  // namespace orrery
