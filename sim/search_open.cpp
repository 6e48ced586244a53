#include "sim/search_open.h"

#include <algorithm>
#include <optional>

namespace orrery {

using Level = SearchLevel;
using Node = SearchNode;

std::vector<Node> SearchOpener::parts_of(Bounds& bounds, const Node& node, Tally tally) const {
  switch (node.level) {
    case Level::rough_layout:
      return without_rough(bounds, node);
    case Level::layout:
      return groups_of(bounds, node, tally);
    case Level::group:
      return cells_of(bounds, node, tally);
    case Level::cell:
      return points_of(bounds, node, tally);
    case Level::point:
      return played(bounds, node, tally);
    case Level::played:
      break;
  }
  return {};
}

std::vector<Node> SearchOpener::played(Bounds& bounds, Node node, Tally tally) const {
  bounds.enter(layouts_[node.layout]);
  bounds.of(node.what);
  node.level = Level::played;
  node.bound = bounds.played(node.features);
  node.value = std::max(node.value, value_of(node.bound));
  if (node.bound.memory > room_) ++tally.counts.without_room;
  if (node.bound.memory > room_ || node.value > tally.limit) return {};
  return {node};
}

// The same layout by its own bound; none where it is not possible.
std::vector<Node> SearchOpener::without_rough(Bounds& bounds, Node node) const {
  node.level = Level::layout;
  node.bound = bounds.of(layouts_[node.layout]);
  if (node.bound.time == 0) return {};
  node.value = std::max(node.value, value_of(node.bound));
  return {node};
}

// A group takes at least what its cell does that recomputes nothing; others of it may need less memory.
std::vector<Node> SearchOpener::groups_of(Bounds& bounds, const Node& node, Tally tally) const {
  std::vector<Node> result;
  bounds.enter(layouts_[node.layout]);
  const std::vector<Recipe> groups = space_.groups(layouts_[node.layout]);
  for (std::size_t g = 0; g < groups.size() && !hurries(); ++g) {
    if (!bounds.possible(groups[g])) continue;
    Node next{.value = node.value, .layout = node.layout, .group = static_cast<std::int32_t>(g), .what = groups[g]};
    next.level = Level::group;
    next.bound = {.time = bounds.time_of_group(groups[g])};
    if (options_.objective == SearchObjective::time) next.value = std::max(node.value, next.bound.time);
    ++tally.counts.bounded;
    if (next.value <= tally.limit) result.push_back(next);
  }
  return result;
}

std::vector<Node> SearchOpener::cells_of(Bounds& bounds, const Node& node, Tally tally) const {
  std::vector<Node> result;
  bounds.enter(layouts_[node.layout]);
  const std::vector<Recipe> cells = space_.cells_of(layouts_[node.layout], node.what);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool first = c == 0 || cells[c].recompute != cells[c - 1].recompute;
    if (first || options_.objective == SearchObjective::memory) add_cell(bounds, node, cells, c, tally, result);
  }
  return result;
}

// Of the cells [c, end) of a kind, the first that may have room: by halving where more layers that run again never
// need more.
std::size_t SearchOpener::first_with_room(Bounds& bounds, const std::vector<Recipe>& cells, std::size_t c,
                                          std::size_t end, Tally tally) const {
  const auto lacks_room = [&](const Recipe& cell) {
    const Bytes memory = bounds.of(cell).memory;
    ++tally.counts.bounded;
    if (memory < kNoRoom && (tally.least == 0 || memory < tally.least)) tally.least = memory;
    return memory > room_;
  };
  bounds.of(cells[c]);
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(c),
             last = cells.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found =
      bounds.frees_memory() ? std::partition_point(first, last, lacks_room) : std::find_if_not(first, last, lacks_room);
  tally.counts.without_room += static_cast<std::uint64_t>(found - first);
  return static_cast<std::size_t>(found - cells.begin());
}

// The first cell from c on, of its kind, that has room; it stands for the later ones.
void SearchOpener::add_cell(Bounds& bounds, const Node& node, const std::vector<Recipe>& cells, std::size_t c,
                            Tally tally, std::vector<Node>& result) const {
  const bool time = options_.objective == SearchObjective::time;
  if (!bounds.possible(cells[c])) return;
  std::size_t end = c + 1;
  while (time && end < cells.size() && cells[end].recompute == cells[c].recompute) ++end;
  const std::size_t i = first_with_room(bounds, cells, c, end, tally);
  if (i == end) return;
  Node next = node;
  next.level = Level::cell;
  next.cell = static_cast<std::int32_t>(i);
  next.what = cells[i];
  next.bound = bounds.of(cells[i]);
  next.floor = node.level == Level::group ? node.value : node.floor;
  const std::optional<Picoseconds> fall = time ? bounds.may_fall() : 0;
  next.value = std::max(next.floor, fall ? value_of(next.bound) - *fall : 0);
  if (next.value <= tally.limit) result.push_back(next);
}

std::vector<Node> SearchOpener::points_of(Bounds& bounds, const Node& node, Tally tally) const {
  const Degrees& layout = layouts_[node.layout];
  bounds.enter(layout);
  std::vector<Node> result;
  if (options_.objective == SearchObjective::time) {
    Recipe group = node.what;
    group.recompute = "none";
    group.recompute_layers = -1;
    const std::vector<Recipe> cells = space_.cells_of(layout, group);
    const std::size_t after = static_cast<std::size_t>(node.cell) + 1;
    if (after < cells.size() && cells[after].recompute == node.what.recompute)
      add_cell(bounds, node, cells, after, tally, result);
  }
  bounds.of(node.what);
  const std::vector<Features> all = space_.features(layout, node.what);
  for (std::size_t f = 0; f < all.size(); ++f) {
    Node next = node;
    next.level = layout.pipeline > 1 ? Level::point : Level::played;
    next.feature = static_cast<std::int32_t>(f);
    next.features = all[f];
    next.bound = bounds.of(all[f]);
    next.value = std::max(node.value, value_of(next.bound));
    ++tally.counts.bounded;
    if (next.bound.memory > room_)
      ++tally.counts.without_room;
    else if (next.value <= tally.limit)
      result.push_back(next);
  }
  return result;
}

std::vector<Node> SearchOpener::parts_of(Bounds& bounds, const Node& node, std::int64_t limit, Found found) const {
  return parts_of(bounds, node, Tally{found.counts, found.least, limit});
}

}  // namespace orrery
