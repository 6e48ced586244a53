#include "sim/search/time_bound.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// A cell takes at least as long as its busiest stage, and a point with transfers no less than the cell.
TEST(SearchTimeBound, IsNoShorterThanTheBusiestStage) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Space space = test::space_of(test::small_space(seed));
    const Profile profile = profile_for(space.base(), "");
    StackCosts stacks(space.base(), profile);
    BoundCache cache(space, profile, stacks);
    for (const RankLayout& layout : space.layouts()) {
      LayoutCosts costs(cache, layout);
      for (const MemoryPlan& memory_plan : space.cells(layout)) {
        if (!is_possible(costs, memory_plan)) continue;
        const CellWork work = cell_work(costs, memory_plan);
        const TimeBound bound = time_bound(costs, work);
        EXPECT_EQ(bound.least, std::max(bound.on_device, bound.beside));
        for (std::size_t s = 0; s < work.stages.size(); ++s) {
          const StageWork& stage = work.stages[s];
          const Picoseconds busy = stage.forward.busy + stage.backward.busy + stage.weight.busy;
          EXPECT_GE(bound.on_device, stage.head + work.cell.micro_batches * busy + bound.least_update);
          EXPECT_GE(bound.updates[s], bound.least_update);
        }
        for (const Features& f : space.features(layout, memory_plan))
          EXPECT_GE(point_time(costs, work, bound, f).on_device, bound.on_device)
              << space.text_of({layout, memory_plan, f});
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace orrery
