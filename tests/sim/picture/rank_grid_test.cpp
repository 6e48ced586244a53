// The grid of ranks.
#include "sim/picture/rank_grid.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

ShownRanks stages_of(const std::vector<std::size_t>& counts) {
  ShownRanks shown;
  for (const std::size_t count : counts) {
    StageRanks stage;
    stage.ranks.resize(count);
    shown.stages.push_back(stage);
  }
  return shown;
}

TEST(RankGrid, StagesBeginNewLines) {
  const ShownRanks shown = stages_of({2, 6, 2});
  const RankGrid grid = rank_grid(shown, 8);
  EXPECT_EQ(grid.columns, 6);
  EXPECT_EQ(grid.lines, 3);
  EXPECT_EQ(grid.ranks[2].at, (GridPlace{0, 1}));
  EXPECT_EQ(grid.stages[2].line, 2);
}

TEST(RankGrid, LongStagesHaveFullLines) {
  const ShownRanks twelve = stages_of({12, 12});
  const RankGrid grid = rank_grid(twelve, 8);
  EXPECT_EQ(grid.columns, 6);
  EXPECT_EQ(grid.lines, 4);
  EXPECT_EQ(grid.stages[1].line, 2);
  const ShownRanks prime = stages_of({13});
  EXPECT_EQ(rank_grid(prime, 8).columns, 8);
}

// The outline of two neighbours has no line between them; that of cells apart is two rectangles.
TEST(RankGrid, OutlinesSurroundTheirCells) {
  const CellSize size = {10, 6, 2};
  EXPECT_EQ(outline({{0, 0}, {1, 0}}, size), "M0 0L12 0 M0 8L12 8 M0 0L0 8 M12 0L24 0 M12 8L24 8 M24 0L24 8");
  const std::string apart = outline({{0, 0}, {2, 0}}, size);
  EXPECT_EQ(std::count(apart.begin(), apart.end(), 'M'), 8);
}

}  // namespace
}  // namespace orrery
