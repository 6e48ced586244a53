#include "sim/search/expand.h"

#include <algorithm>
#include <optional>

namespace orrery {
namespace {

// Whether two cells differ only in how many layers run again.
bool are_of_a_kind(const Recipe& a, const Recipe& b) {
  return a.recompute == b.recompute && a.activations == b.activations && a.activation_layers == b.activation_layers;
}

}  // namespace

std::vector<SearchNode> SearchOpener::parts_of(Bounds& bounds, const SearchNode& node, Tally tally) const {
  switch (node.level) {
    case SearchLevel::rough_layout:
      return without_rough(bounds, node);
    case SearchLevel::layout:
      return groups_of(bounds, node, tally);
    case SearchLevel::group:
      return cells_of(bounds, node, tally);
    case SearchLevel::cell:
      return points_of(bounds, node, tally);
    case SearchLevel::point:
      return played(bounds, node, tally);
    case SearchLevel::played:
      break;
  }
  return {};
}

std::vector<SearchNode> SearchOpener::played(Bounds& bounds, SearchNode node, Tally tally) const {
  bounds.enter(layouts_[node.layout]);
  bounds.of(node.what);
  node.level = SearchLevel::played;
  const bool room = make_room(bounds, node, true);
  node.value = std::max(node.value, value_of(node.bound));
  if (node.value > tally.limit) return {};
  return room ? std::vector{node} : without_room(bounds, node, tally);
}

// The points to try in place of a point that lacks room: the same point with activations elsewhere, which is in no cell
// where the cell itself had room.
std::vector<SearchNode> SearchOpener::without_room(const Bounds& bounds, const SearchNode& point, Tally tally) const {
  ++tally.counts.without_room;
  if (options_.objective != SearchObjective::time || !bounds.frees_memory()) return {};
  return with_activations_away(point);
}

// Bounds a point. Where the number of layers with activations elsewhere is not given, takes as many as the point needs.
// Returns whether the point has room.
bool SearchOpener::make_room(Bounds& bounds, SearchNode& point, bool plays) const {
  for (;;) {
    bounds.of(point.what);
    point.bound = plays ? bounds.played(point.features) : bounds.of(point.features);
    if (point.bound.memory <= room_ || point.bound.memory >= kNoRoom) return point.bound.memory <= room_;
    const std::optional<SearchNode> more = with_one_more(point);
    if (!more) return false;
    point.what = more->what;
  }
}

std::optional<SearchNode> SearchOpener::with_one_more(const SearchNode& point) const {
  if (!point.as_needed) return std::nullopt;
  const Degrees& layout = layouts_[point.layout];
  if (point.what.activation_layers >= space_.fullest_stage(layout.pipeline, point.what)) return std::nullopt;
  SearchNode more = point;
  ++more.what.activation_layers;
  more.level = SearchLevel::point;
  return more;
}

bool SearchOpener::stays(const Recipe& what) const {
  return (what.activations == "none" || !space_.keeps_activations()) &&
         (what.offload == "none" || !space_.keeps_states());
}

SearchFamily SearchOpener::family_of(const SearchNode& n) const {
  const Recipe& w = n.what;
  const std::string_view states = space_.keeps_states() ? "none" : w.offload;
  return {n.layout, w.schedule, w.virtual_stages, w.sharding, w.shard_group, n.feature, states};
}

std::optional<SearchNode> SearchOpener::where_all_stays(const SearchNode& node) const {
  const SearchFamily family = family_of(node);
  const std::vector<Recipe> groups = space_.groups(layouts_[node.layout]);
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
  Recipe group = point.what;
  group.recompute = "none";
  group.recompute_layers = -1;
  const std::vector<Recipe> cells = space_.cells_of(layouts_[point.layout], group);
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

// The number of layers whose activations must leave the device: the fewest that may make room.
std::int64_t SearchOpener::layers_needed(Bounds& bounds, Recipe cell) const {
  std::int64_t few = 1, enough = space_.fullest_stage(bounds.layout().pipeline, cell);
  while (few < enough) {
    const std::int64_t middle = cell.activation_layers = few + (enough - few) / 2;
    bounds.of(cell);
    if (bounds.device_memory() > room_)
      few = middle + 1;
    else
      enough = middle;
  }
  return enough;
}

// The same layout with the layout's own bound instead of the rough one; none where the layout is not possible.
std::vector<SearchNode> SearchOpener::without_rough(Bounds& bounds, SearchNode node) const {
  node.level = SearchLevel::layout;
  node.bound = bounds.of(layouts_[node.layout]);
  if (node.bound.time == 0) return {};
  node.value = std::max(node.value, value_of(node.bound));
  return {node};
}

// A group takes at least the time of the cell of the group that recomputes nothing; other cells of the group may need
// less memory.
std::vector<SearchNode> SearchOpener::groups_of(Bounds& bounds, const SearchNode& node, Tally tally) const {
  std::vector<SearchNode> result;
  bounds.enter(layouts_[node.layout]);
  const std::vector<Recipe> groups = space_.groups(layouts_[node.layout]);
  for (std::size_t g = 0; g < groups.size() && !hurries(); ++g) {
    if (!bounds.possible(groups[g])) continue;
    SearchNode next{
        .value = node.value, .layout = node.layout, .group = static_cast<std::int32_t>(g), .what = groups[g]};
    next.level = SearchLevel::group;
    next.bound = {.time = bounds.time_of_group(groups[g])};
    if (options_.objective == SearchObjective::time) next.value = std::max(node.value, next.bound.time);
    ++tally.counts.bounded;
    if (next.value <= tally.limit) result.push_back(next);
  }
  return result;
}

std::vector<SearchNode> SearchOpener::cells_of(Bounds& bounds, const SearchNode& node, Tally tally) const {
  std::vector<SearchNode> result;
  bounds.enter(layouts_[node.layout]);
  const std::vector<Recipe> cells = space_.cells_of(layouts_[node.layout], node.what);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool first = c == 0 || !are_of_a_kind(cells[c], cells[c - 1]);
    if (first || options_.objective == SearchObjective::memory) add_cell(bounds, node, cells, c, tally, result);
  }
  return result;
}

// The first of the cells [c, end) of one kind of recomputation that may have room; found by halving where more layers
// that run again never need more memory.
std::size_t SearchOpener::first_with_room(Bounds& bounds, const std::vector<Recipe>& cells, std::size_t c,
                                          std::size_t end, Tally tally) const {
  const auto lacks_room = [&](const Recipe& cell) {
    const Bytes memory = bounds.of(cell).memory;
    ++tally.counts.bounded;
    if (memory < kNoRoom && (tally.least == 0 || memory < tally.least)) tally.least = memory;
    return memory > room_;
  };
  if (!lacks_room(cells[c])) return c;
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(c),
             last = cells.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found = bounds.frees_memory() ? std::partition_point(first + 1, last, lacks_room)
                                           : std::find_if_not(first + 1, last, lacks_room);
  tally.counts.without_room += static_cast<std::uint64_t>(found - first);
  return static_cast<std::size_t>(found - cells.begin());
}

// Adds the first cell from c on, of the same kind of recomputation, that has room; it stands for the later cells.
void SearchOpener::add_cell(Bounds& bounds, const SearchNode& node, const std::vector<Recipe>& cells, std::size_t c,
                            Tally tally, std::vector<SearchNode>& result) const {
  const bool time = options_.objective == SearchObjective::time;
  if (!bounds.possible(cells[c])) return;
  std::size_t end = c + 1;
  while (time && end < cells.size() && are_of_a_kind(cells[end], cells[c])) ++end;
  const std::size_t i = first_with_room(bounds, cells, c, end, tally);
  if (i == end) return;
  SearchNode next = node;
  next.level = SearchLevel::cell;
  next.cell = static_cast<std::int32_t>(i);
  next.what = cells[i];
  next.as_needed = cells[i].activation_layers == kAsNeeded;
  // If the bounds allow all activations to stay on the device, activations leave only once a simulation lacks memory.
  Recipe stays = cells[i];
  stays.activations = "none";
  stays.activation_layers = -1;
  const bool may_stay = next.as_needed && time && space_.keeps_activations() && bounds.of(stays).memory <= room_;
  if (may_stay && bounds.frees_memory()) return;
  if (next.as_needed && !time) return add_each_number(bounds, next, tally, result);
  if (next.as_needed) next.what.activation_layers = layers_needed(bounds, next.what);
  next.bound = bounds.of(next.what);
  next.floor = node.level == SearchLevel::group ? node.value : node.floor;
  const std::optional<Picoseconds> fall = time ? bounds.may_fall() : 0;
  const auto at_least = [&](std::int64_t value) { return std::max(next.value, fall ? value - *fall : 0); };
  next.value = next.floor;
  next.value = at_least(time ? bounds.time_on_device() : next.bound.memory);
  if (time && next.value <= tally.limit) next.value = at_least(least_of_points(bounds, next.what));
  if (next.value <= tally.limit) result.push_back(next);
}

// The least time bound of any point of the cell that was bounded last, with activations on the device.
Picoseconds SearchOpener::least_of_points(Bounds& bounds, const Recipe& cell) const {
  std::optional<Picoseconds> least;
  for (const Features& features : space_.features(bounds.layout(), cell)) {
    const Picoseconds time = bounds.on_device(features);
    least = std::min(least.value_or(time), time);
  }
  return least.value_or(0);
}

// Adds the cell with activations of every number of layers elsewhere, for searches whose objective is memory.
void SearchOpener::add_each_number(Bounds& bounds, SearchNode cell, Tally tally,
                                   std::vector<SearchNode>& result) const {
  cell.as_needed = false;
  const std::int64_t most = space_.fullest_stage(bounds.layout().pipeline, cell.what);
  for (cell.what.activation_layers = 1; cell.what.activation_layers <= most; ++cell.what.activation_layers) {
    cell.bound = bounds.of(cell.what);
    cell.value = std::max(cell.floor, cell.bound.memory);
    ++tally.counts.bounded;
    if (cell.bound.memory <= room_ && cell.value <= tally.limit) result.push_back(cell);
  }
}

std::vector<SearchNode> SearchOpener::points_of(Bounds& bounds, const SearchNode& node, Tally tally) const {
  const Degrees& layout = layouts_[node.layout];
  bounds.enter(layout);
  std::vector<SearchNode> result;
  if (options_.objective == SearchObjective::time) {
    Recipe group = node.what;
    group.recompute = "none";
    group.recompute_layers = group.activation_layers = -1;
    group.activations = "none";
    const std::vector<Recipe> cells = space_.cells_of(layout, group);
    const std::size_t after = static_cast<std::size_t>(node.cell) + 1;
    if (after < cells.size() && are_of_a_kind(cells[after], cells[after - 1]))
      add_cell(bounds, node, cells, after, tally, result);
  }
  const std::vector<Features> all = space_.features(layout, node.what);
  for (std::size_t f = 0; f < all.size(); ++f) {
    SearchNode next = node;
    next.level = layout.pipeline > 1 ? SearchLevel::point : SearchLevel::played;
    next.feature = static_cast<std::int32_t>(f);
    next.features = all[f];
    const bool room = make_room(bounds, next, false);
    next.value = std::max(node.value, value_of(next.bound));
    ++tally.counts.bounded;
    if (next.value > tally.limit) continue;
    const std::vector<SearchNode> found = room ? std::vector{next} : without_room(bounds, next, tally);
    result.insert(result.end(), found.begin(), found.end());
  }
  return result;
}

std::vector<SearchNode> SearchOpener::parts_of(Bounds& bounds, const SearchNode& node, std::int64_t limit,
                                               Found found) const {
  return parts_of(bounds, node, Tally{found.counts, found.least, limit});
}

}  // namespace orrery
