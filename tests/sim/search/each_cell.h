#pragma once

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "sim/search/cell_work.h"
#include "tests/sim/small_space.h"

namespace orrery::test {

// Calls f(space, costs, work) for every possible cell of six random small spaces.
template <class F>
void for_each_cell(const F& f) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Space space = space_of(small_space(seed));
    const Profile profile = profile_for(space.base(), "");
    ModelCostCache stacks(space.base(), profile);
    BoundCache cache(space, profile, stacks);
    for (const RankLayout& layout : space.layouts()) {
      LayoutCosts costs(cache, layout);
      for (const MemoryPlan& memory_plan : space.cells(layout)) {
        if (is_possible(costs, memory_plan)) f(space, costs, cell_work(costs, memory_plan));
      }
    }
  }
}

}  // namespace orrery::test
