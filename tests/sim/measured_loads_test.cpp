// Loads of experts as a run measured them, and what would have been predicted with them.
#include "sim/measured_loads.h"

#include <gtest/gtest.h>

#include "tests/sim/fake_runs.h"

namespace orrery {
namespace {

Spec two_ranks() {
  return parse_spec(
      "model: {name: moe, layers: 2, hidden: 256, heads: 4, feed_forward: 512, vocab: 512, moe: {experts: 4, top_k: 2, "
      "feed_forward: 1024}}\nsequence: 256\ncluster: {node: dgx-h100, nodes: 1}\ngpus: 2\nsoftware: orrery\n"
      "strategy: {expert: 2, micro_batch: 8, global_batch: 16}\n",
      "case");
}

// Rows that a rank sends, gets and gathers, in each of two layers.
std::vector<std::int64_t> sizes_of(std::int64_t first, std::int64_t second) {
  return {4096, first, first, 4096, second, second};
}

// In the second step, the median one, each rank is the busy one of a layer; in the third one rank is, of both.
std::vector<RankRun> uneven_runs(const Spec& spec) {
  std::vector<RankRun> runs = fake_runs(make_plan(spec), 3);
  runs[0].steps[0].sizes = runs[1].steps[0].sizes = sizes_of(4096, 4096);
  runs[0].steps[1].sizes = sizes_of(6144, 2048);
  runs[1].steps[1].sizes = sizes_of(2048, 6144);
  runs[0].steps[2].sizes = sizes_of(1024, 1024);
  runs[1].steps[2].sizes = sizes_of(7168, 7168);
  return runs;
}

TEST(MeasuredLoads, TellTimeFromMemory) {
  const Spec spec = two_ranks();
  const MeasuredLoads loads = measured_loads(unfold(make_plan(spec)), uneven_runs(spec));
  EXPECT_DOUBLE_EQ(loads.step, 1.5);
  EXPECT_DOUBLE_EQ(loads.memory, 1.75);
}

TEST(MeasuredLoads, AreAnInputOfThePrediction) {
  const Spec spec = two_ranks();
  const Prediction even = predict(spec, true);
  const Prediction loaded = with_measured_loads(spec, even, uneven_runs(spec), "");
  EXPECT_GT(loaded.report.step_time_s, even.report.step_time_s);
  const auto peak = [](const Prediction& p, std::size_t rank) { return p.report.memory.ranks[rank].memory.peak; };
  EXPECT_GT(peak(loaded, 0), peak(even, 0));
  EXPECT_EQ(peak(loaded, 1), peak(loaded, 0));
  Spec busy = spec;
  busy.model.moe->imbalance = 1.75;
  EXPECT_EQ(peak(loaded, 0), peak(predict(busy, true), 0));
  EXPECT_EQ(loaded.plan.task_count(), even.plan.task_count());
  EXPECT_EQ(with_measured_loads(spec, even, fake_runs(make_plan(spec), 3), "").report.step_time_s,
            even.report.step_time_s);
}

}  // namespace
}  // namespace orrery
