#include "sim/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

TEST(Goodput, BestIntervalIsYoungsForShortCheckpoints) {
  const FailurePlan plan{.between_failures = 1e6, .checkpoint = 1};
  EXPECT_NEAR(best_interval(plan), std::sqrt(2e6), 0.01 * std::sqrt(2e6));
}

TEST(Goodput, NoIntervalIsBetterThanTheBest) {
  for (const double checkpoint : {1.0, 30.0, 300.0}) {
    FailurePlan plan{.between_failures = 10800, .checkpoint = checkpoint, .restart = 600};
    plan.interval = best_interval(plan);
    const double best = goodput(plan);
    for (const double factor : {0.25, 0.5, 0.8, 1.25, 2.0, 4.0}) {
      FailurePlan other = plan;
      other.interval *= factor;
      EXPECT_LE(goodput(other), best * 1.0005) << checkpoint << " " << factor;
    }
  }
}

TEST(Goodput, IsOneWithoutFailuresAndFallsWithThem) {
  EXPECT_EQ(goodput({}), 1);
  const FailurePlan few{.between_failures = 1e6, .checkpoint = 30, .restart = 600};
  const FailurePlan many{.between_failures = 1e4, .checkpoint = 30, .restart = 600};
  EXPECT_LT(goodput(many), goodput(few));
  EXPECT_LT(goodput(few), 1);
}

TEST(Goodput, Llama405BFailsEveryThreeHours) {
  const FailurePlan plan = failure_plan(find_cluster("dgx-h100", 2048), 2048, 14 * 405e9, 5);
  EXPECT_NEAR(plan.between_failures / 3600, 3.1, 0.05);  // 419 in 54 days
}

}  // namespace
}  // namespace orrery
