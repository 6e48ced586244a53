// Step times of stages with different numbers of ranks: the closed form where they balance, and the planner's choice
// among all.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/partition/dapple.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// A rank's layers take time in proportion to its samples, half as long forward as back; everything else is free.
Timing shared_layers_alone(const Plan& plan, Picoseconds forward_of_all, Bytes bytes_of_all) {
  Timing timing;
  timing.row_of_slot.assign(plan.classes.size(), 0);
  timing.rows.assign(1, std::vector<OpTiming>(plan.ops.size()));
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    const Picoseconds own = forward_of_all * block.buffers[kOutputGradient].bytes / bytes_of_all;
    timing.rows[0][block.forward.front()].duration = own;
    timing.rows[0][block.backward.front()].duration = 2 * own;
  }
  return timing;
}

// With as many layers on each stage as ranks, all stages take the same time, and the bubble is that of 1F1B and GPipe.
TEST(StageReplicas, ThatBalanceTakeTheClosedFormToThePicosecond) {
  for (const char* schedule : {"dapple", "gpipe"}) {
    for (const std::vector<int>& ranks : {std::vector{2, 1}, {1, 3}, {2, 3}, {1, 4, 2}, {6, 1, 3, 2}}) {
      for (const std::int64_t m : {1, 3, 8}) {
        const std::int64_t p = std::ssize(ranks);
        const int layers = std::accumulate(ranks.begin(), ranks.end(), 0);
        const Plan plan = make_plan(test::spec_of(
            fmt::format("name: m, layers: {}, hidden: 64, heads: 8, feed_forward: 256, vocab: 256", layers),
            fmt::format("pipeline: {}, stage_replicas: [{}], stage_layers: [{}], schedule: {}, micro_batch: 12, "
                        "global_batch: {}, clip: 0",
                        p, fmt::join(ranks, ", "), fmt::join(ranks, ", "), schedule, 12 * m)));
        const Timing timing = shared_layers_alone(plan, 1200, Bytes{12} * 32 * 64 * plan.element_bytes);
        EXPECT_EQ(simulate(plan, timing).step_time, (m + p - 1) * 3 * 1200) << schedule << " m " << m;
      }
    }
  }
}

// Simulating one rank of each place gives the same time as simulating every rank.
TEST(StageReplicas, FoldToThePicosecond) {
  const Spec spec = test::spec_of(
      test::kSmall, "pipeline: 2, data: 2, stage_replicas: [2, 1], sharding: zero1, micro_batch: 2, global_batch: 16");
  EXPECT_EQ(predict(spec).trace.step_time, predict(spec, true).trace.step_time);
  const Spec cut = test::spec_of(
      test::kSmall,
      "tensor: 2, pipeline: 2, data: 2, stage_replicas: [2, 1], sharding: zero1, micro_batch: 2, global_batch: 16");
  ASSERT_TRUE(cut.strategy.sequence_parallel);
  EXPECT_EQ(predict(cut).trace.step_time, predict(cut, true).trace.step_time);
}

std::string shared_spec_text(const std::string& strategy) {
  return fmt::format(
      "model: {{name: m, layers: 12, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 128000}}\nsequence: 1024\n"
      "cluster: {{node: dgx-a100, nodes: 1}}\ngpus: 4\nsoftware: orrery\n"
      "strategy: {{schedule: dapple, micro_batch: 4, global_batch: 64, {}}}\n",
      strategy);
}

double shared_step_of(const std::string& strategy) {
  return predict(parse_spec(shared_spec_text(strategy), "case")).report.step_time_s;
}

// Whatever weighs layers by their products and transfers by their bytes cannot be exact; it must not be far.
TEST(StageReplicas, ArePlannedNearTheFastestOfAll) {
  const double planned = shared_step_of("stage_replicas: planned");
  double best = planned, worst = planned;
  for (const char* ranks : {"[4]", "[2, 2]", "[1, 2, 1]", "[2, 1, 1]", "[1, 1, 2]", "[1, 1, 1, 1]"}) {
    const auto stages = 1 + std::count(ranks, ranks + std::string(ranks).size(), ',');
    const double step = shared_step_of(fmt::format("pipeline: {}, stage_replicas: {}", stages, ranks));
    best = std::min(best, step);
    worst = std::max(worst, step);
  }
  EXPECT_LT(planned, 1.05 * best);
  EXPECT_GT(worst, 1.1 * best);
}

}  // namespace
}  // namespace orrery
