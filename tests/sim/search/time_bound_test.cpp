#include "sim/search/time_bound.h"

#include <gtest/gtest.h>

#include "tests/sim/search/each_cell.h"

namespace orrery {
namespace {

// A cell takes at least as long as its busiest stage, and a point with transfers no less than the cell.
TEST(SearchTimeBound, IsNoShorterThanTheBusiestStage) {
  std::size_t compared = 0;
  test::for_each_cell([&](const Space& space, LayoutCosts& costs, const CellWork& work) {
    const TimeBound bound = time_bound(costs, work);
    EXPECT_EQ(bound.least, std::max(bound.on_device, bound.beside));
    for (std::size_t s = 0; s < work.stages.size(); ++s) {
      const StageWork& stage = work.stages[s];
      const Picoseconds busy = stage.forward.busy + stage.backward.busy + stage.weight.busy;
      EXPECT_GE(bound.on_device, stage.head + work.cell.micro_batches * busy + bound.least_update);
      EXPECT_GE(bound.updates[s], bound.least_update);
    }
    const auto& [layout, memory_plan] = std::tie(work.cell.layout, work.cell.memory_plan);
    for (const Features& f : space.features(layout, memory_plan))
      EXPECT_GE(point_time(costs, work, bound, f).on_device, bound.on_device)
          << space.text_of({layout, memory_plan, f});
    ++compared;
  });
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace orrery
