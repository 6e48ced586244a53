#include "sim/search/host.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "sim/search/bounds.h"
#include "sim/search/search.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// With every kind of offloading to the host or to disks, bounds are below the simulated times, and tighter than without
// its terms.
TEST(SearchHost, BoundsAreBelowWithOffload) {
  std::size_t compared = 0, tell = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    const test::SmallSpace small = test::offload_space(seed);
    const Space space = test::space_of(small);
    const Profile profile = profile_for(space.base(), "");
    ModelCostCache costs(space.base(), profile);
    BoundCache cache(space, profile, costs);
    const std::vector<Point> points = test::points_of(space);
    test::Draw random{seed + 1000};
    for (int i = 0; i < 12 && !points.empty(); ++i) {
      const Point& point = points[random.below(points.size())];
      const auto report = evaluate(space, profile, point);
      if (!report) continue;
      const Picoseconds step = picoseconds(report->step_time_s);
      const std::string what = fmt::format("seed {} {}\n{}", seed, space.text_of(point), small.text);
      LayoutCosts layout(cache, point.layout);
      EXPECT_LE(layout_bound(layout), step) << what;
      const Picoseconds group = group_bound(layout, [&] {
        MemoryPlan named = point.cell;
        named.recompute = "none";
        return named;
      }());
      EXPECT_LE(group, step) << what;
      const CellBounds parts = cell_bounds(layout, point.cell);
      const Bound cell = bound_of(parts), whole = bound_of(layout, parts, point.features);
      EXPECT_LE(cell.time, step) << what;
      EXPECT_LE(whole.time, step) << what;
      EXPECT_LE(whole.memory, report->memory.peak_device) << what;
      MemoryPlan stays = point.cell;
      stays.offload = stays.activations = "none";
      tell += point.cell.offload != "none" && bound_of(cell_bounds(layout, stays)).time < cell.time ? 1U : 0U;
      ++compared;
    }
  }
  EXPECT_GT(compared, 150U);
  EXPECT_GT(tell, 20U);
}

}  // namespace
}  // namespace orrery
