#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/picture/shown_ranks.h"

namespace orrery {

// The column and the line of a rank in a picture's grid of ranks. Stages follow each other from the top, each
// beginning a new line; a stage of many ranks has several lines.
struct GridPlace {
  std::int64_t column = 0, line = 0;
  friend auto operator<=>(const GridPlace&, const GridPlace&) = default;
};

struct GridRank {
  const ShownRank* rank = nullptr;
  GridPlace at;
};

// A stage in the grid of ranks: its first line in the grid, and the number of lines that its ranks take.
struct GridStage {
  std::string name;
  std::int64_t line = 0, lines = 1;
};

struct RankGrid {
  std::vector<GridRank> ranks;
  std::vector<GridStage> stages;
  std::int64_t columns = 1, lines = 0;
};

// Returns the grid of the shown ranks, with at most `most_columns` columns.
RankGrid rank_grid(const ShownRanks& shown, std::int64_t most_columns);

// The size of the cells of the grid of ranks in pixels, and the gap between two cells.
struct CellSize {
  double width = 0, height = 0, gap = 0;

  double left(const GridPlace& at) const { return gap / 2 + static_cast<double>(at.column) * (width + gap); }
  double top(const GridPlace& at) const { return gap / 2 + static_cast<double>(at.line) * (height + gap); }
};

// Returns the outline of a set of cells, in the middle of the gaps around the cells, as commands of an SVG path.
std::string outline(const std::set<GridPlace>& cells, const CellSize& size);

}  // namespace orrery
