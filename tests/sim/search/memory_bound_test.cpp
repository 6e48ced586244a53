#include "sim/search/memory_bound.h"

#include <gtest/gtest.h>

#include "tests/sim/search/each_cell.h"

namespace orrery {
namespace {

// The bound of a cell is that of its stage that holds most, and no point of it has a lower one.
TEST(SearchMemoryBound, IsThatOfTheFullestStage) {
  std::size_t compared = 0;
  test::for_each_cell([&](const Space& space, LayoutCosts& costs, const CellWork& work) {
    const MemoryBound bound = memory_bound(costs, work);
    for (const StageMemory& s : bound.stages) EXPECT_LE(s.held, bound.on_device);
    EXPECT_TRUE(bound.least == bound.on_device || bound.least == kNoRoom);
    const auto& [layout, memory_plan] = std::tie(work.cell.layout, work.cell.memory_plan);
    for (const Features& f : space.features(layout, memory_plan))
      EXPECT_GE(memory_with(costs, work, bound, f), bound.least) << space.text_of({layout, memory_plan, f});
    compared += bound.stages.size();
  });
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace orrery
