// The versions of weights that micro-batches use, and the number of versions kept: closed forms of the papers.
#include "models/schedule/weight_versions.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

// PipeDream (Narayanan et al. 2019, section 3.3): stage i of p computes gradients with weights that are p - 1 - i
// updates old.
TEST(WeightVersions, OfPipedreamAreAsManyAsStagesFollow) {
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    const Schedule s = make_schedule("pipedream", {p, 5 * p, 1, {}});
    for (std::int64_t stage = 0; stage < p; ++stage) {
      const WeightVersions v = weight_versions(s.order[stage], s.order[stage], 1);
      EXPECT_EQ(v.kept, p - stage);
      EXPECT_EQ(v.staleness, p - 1 - stage);
      for (std::int64_t n = 0; n < 5 * p; ++n) EXPECT_EQ(v.met[n], std::max<std::int64_t>(0, n - (p - 1 - stage)));
    }
  }
}

// With PipeDream's vertical sync all stages use the weights that the first stage uses: w(t - p + 1).
TEST(WeightVersions, OfVerticalSyncAreOneForAllStages) {
  for (const std::int64_t p : {1, 2, 4, 8}) {
    const Schedule s = make_schedule("pipedream", {p, 5 * p, 1, {}});
    for (std::int64_t stage = 0; stage < p; ++stage) {
      const WeightVersions v = weight_versions(s.order[stage], s.order[0], 1);
      EXPECT_EQ(v.kept, p);
      EXPECT_EQ(v.staleness, p - 1);
      for (std::int64_t n = 0; n < 5 * p; ++n) EXPECT_EQ(v.met[n], std::max<std::int64_t>(0, n - (p - 1)));
    }
  }
}

// PipeDream-2BW (Narayanan et al. 2021, section 3.1) uses weights that are one update old: W(t + 1) = W(t) - gradient
// of W(t - 1), for m >= p.
TEST(WeightVersions, OfTwoBuffersAreOneUpdateOld) {
  for (const std::int64_t p : {2, 3, 4, 8}) {
    for (const std::int64_t m : {p, p + 1, 3 * p}) {
      const Schedule s = make_schedule("pipedream-2bw", {p, 5 * m, 1, {}});
      for (std::int64_t stage = 0; stage < p; ++stage) {
        const WeightVersions v = weight_versions(s.order[stage], s.order[0], m);
        EXPECT_EQ(v.kept, 2) << p << " " << m;
        EXPECT_EQ(v.staleness, 1) << p << " " << m;
        for (std::int64_t n = 0; n < 5 * m; ++n) EXPECT_EQ(v.met[n], std::max<std::int64_t>(0, n / m - 1));
      }
    }
  }
}

}  // namespace
}  // namespace orrery
