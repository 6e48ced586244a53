#include "sim/picture/rank_grid.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/print/svg.h"

namespace orrery {
namespace {

// Returns the number of columns for a grid whose largest stage has `most_ranks` ranks: the largest number of columns
// that divides them into full lines, unless that is less than half of `most_columns`.
std::int64_t columns_for(std::int64_t most_ranks, std::int64_t most_columns) {
  if (most_ranks <= most_columns) return std::max<std::int64_t>(1, most_ranks);
  for (std::int64_t c = most_columns; 2 * c >= most_columns; --c) {
    if (most_ranks % c == 0) return c;
  }
  return most_columns;
}

}  // namespace

RankGrid rank_grid(const ShownRanks& shown, std::int64_t most_columns) {
  RankGrid grid;
  std::int64_t most = 1;
  for (const StageRanks& stage : shown.stages) most = std::max(most, static_cast<std::int64_t>(stage.ranks.size()));
  grid.columns = columns_for(most, most_columns);
  for (const StageRanks& stage : shown.stages) {
    const auto count = static_cast<std::int64_t>(stage.ranks.size());
    grid.stages.push_back({stage.name, grid.lines, (count + grid.columns - 1) / grid.columns});
    for (std::int64_t i = 0; i < count; ++i)
      grid.ranks.push_back(
          {&stage.ranks[static_cast<std::size_t>(i)], {i % grid.columns, grid.lines + i / grid.columns}});
    grid.lines += grid.stages.back().lines;
  }
  return grid;
}

std::string outline(const std::set<GridPlace>& cells, const CellSize& size) {
  std::string path;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    path += fmt::format("{}M{} {}L{} {}", path.empty() ? "" : " ", pixels(x1), pixels(y1), pixels(x2), pixels(y2));
  };
  for (const GridPlace& c : cells) {
    const double x1 = size.left(c) - size.gap / 2, y1 = size.top(c) - size.gap / 2;
    const double x2 = x1 + size.width + size.gap, y2 = y1 + size.height + size.gap;
    if (!cells.contains({c.column, c.line - 1})) line(x1, y1, x2, y1);
    if (!cells.contains({c.column, c.line + 1})) line(x1, y2, x2, y2);
    if (!cells.contains({c.column - 1, c.line})) line(x1, y1, x1, y2);
    if (!cells.contains({c.column + 1, c.line})) line(x2, y1, x2, y2);
  }
  return path;
}

}  // namespace orrery
