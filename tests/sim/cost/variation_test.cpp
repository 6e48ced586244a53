#include "sim/cost/variation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "models/base/normal.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Prediction with_kernels(double deviation) {
  Spec spec = test::spec_of(test::kSmall, "tensor: 4, data: 2, global_batch: 2");
  spec.cluster.variation = Variation{0, deviation};
  return predict(spec, profile_for(spec, ""));
}

// A wait grows in proportion to the deviation of kernels, and only collectives within layers wait.
TEST(Variation, CollectivesWithinLayersWaitForTheSlowestKernels) {
  const Prediction alike = with_kernels(0), some = with_kernels(0.01), more = with_kernels(0.02);
  int waiting = 0;
  for (std::size_t i = 0; i < alike.plan.ops.size(); ++i) {
    const auto at = [&](const Prediction& p) { return p.costs.timing.rows.front()[i].duration; };
    const Picoseconds wait = at(some) - at(alike);
    EXPECT_NEAR(static_cast<double>(at(more) - at(alike)), 2.0 * static_cast<double>(wait), 2);
    const auto* c = std::get_if<Collective>(&alike.plan.ops[i].work);
    if (c == nullptr || !meets_in_layers(c->group)) {
      EXPECT_EQ(wait, 0) << alike.plan.ops[i].name;
    }
    waiting += wait > 0 ? 1 : 0;
  }
  EXPECT_GT(waiting, 3);
}

// Between the two all-gathers of a layer's attention and of its MLP, the wait is that of the kernels between them.
TEST(Variation, OneKernelBetweenCollectivesWaitsForTheSlowestOfTheGroup) {
  const Prediction p = with_kernels(0);
  Timing timing = p.costs.timing;
  for (std::vector<OpTiming>& row : timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Op& op = p.plan.ops[i];
      row[i].duration = op.lane == LaneKind::compute && !moves(op) && op.name != "qkv" ? 0 : 1'000'000;
    }
  }
  Timing slow = timing;
  wait_for_slowest_kernels(p.plan, Variation{0, 0.01}, slow);
  Picoseconds most = 0;
  for (std::size_t i = 0; i < slow.rows[0].size(); ++i)
    most = std::max(most, slow.rows[0][i].duration - timing.rows[0][i].duration);
  EXPECT_NEAR(static_cast<double>(most), 1e6 * 0.01 * largest_normal(4), 1.5);
  // Ranks that wait for the slowest GPU anyway wait little longer for kernels.
  slow = timing;
  wait_for_slowest_kernels(p.plan, Variation{0.02, 0.01}, slow);
  most = 0;
  for (std::size_t i = 0; i < slow.rows[0].size(); ++i)
    most = std::max(most, slow.rows[0][i].duration - timing.rows[0][i].duration);
  EXPECT_NEAR(static_cast<double>(most), 1e6 * (std::hypot(0.02, 0.01) - 0.02) * largest_normal(4), 1.5);
}

}  // namespace
}  // namespace orrery
