#include "sim/search/memory_bound.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// The bound of a cell is that of its stage that holds most, and no point of it has a lower one.
TEST(SearchMemoryBound, IsThatOfTheFullestStage) {
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
        const MemoryBound bound = memory_bound(costs, work);
        for (const StageMemory& s : bound.stages) EXPECT_LE(s.held, bound.on_device);
        EXPECT_TRUE(bound.least == bound.on_device || bound.least == kNoRoom);
        for (const Features& f : space.features(layout, memory_plan))
          EXPECT_GE(memory_with(costs, work, bound, f), bound.least) << space.text_of({layout, memory_plan, f});
        compared += bound.stages.size();
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace orrery
