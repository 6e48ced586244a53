// The measured loads of experts in a run, and the prediction with these loads.
#include "sim/runs/measured_loads.h"

#include <gtest/gtest.h>

#include "models/planner/make_plan.h"
#include "sim/validate/validation.h"
#include "tests/sim/cpu_profile.h"
#include "tests/sim/swinging_runs.h"

namespace orrery {
namespace {

Prediction predicted_loads(const Spec& spec) {
  const Plan folded = make_plan(spec);
  return predict(spec, swinging_profile(folded), true);
}

std::vector<Bytes> peaks(const Prediction& p) {
  std::vector<Bytes> list;
  for (const RankMemory& rank : p.report.memory.ranks) list.push_back(rank.memory.peak);
  return list;
}

// The router's choices are the only unknown: predicted_loads with them, every op and the step take the measured times.
TEST(MeasuredLoads, ExplainARouterThatSwings) {
  for (const char* moe : {"", ", capacity_factor: 1.5"}) {
    const Spec spec = swinging_spec(moe);
    const Prediction even = predicted_loads(spec);
    const std::vector<RankRun> runs = swinging_runs(spec, even.profile, 9);
    const Prediction loaded = with_measured_loads(spec, even, runs);
    const Validation before = validate(spec, even, runs), v = validate(spec, loaded, runs);
    EXPECT_LT(before.step_error, -0.02) << moe;
    EXPECT_LT(v.cost_error, 1e-3) << moe;
    EXPECT_LT(std::abs(v.step_error), 1e-3) << moe;
    EXPECT_EQ(loaded.report.plan_hash, even.report.plan_hash);
  }
}

// The largest loads of every rank over all steps are used, not only those of the median step.
TEST(MeasuredLoads, MemoryIsOfTheFullestStep) {
  const Spec spec = swinging_spec("");
  const Prediction even = predicted_loads(spec);
  std::vector<RankRun> runs = runs_of(even.plan, even.trace, even.report.plan_hash, 3);
  EXPECT_EQ(peaks(with_measured_loads(spec, even, runs)), peaks(even));
  const auto twice = [&](std::size_t rank, std::size_t step) {
    std::vector<std::int64_t>& sizes = runs[rank].steps[step].sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] *= i % 3 == 0 ? 1 : 2;  // as many sent, more received
  };
  twice(0, 0);  // when there are no moments yet: not the fullest
  twice(1, 2);
  const Prediction loaded = with_measured_loads(spec, even, runs);
  EXPECT_EQ(loaded.report.step_time_s, even.report.step_time_s);
  EXPECT_EQ(peaks(loaded)[0], peaks(even)[0]);
  EXPECT_GT(peaks(loaded)[1], peaks(even)[1]);
  EXPECT_EQ(loaded.report.memory.peak, peaks(loaded)[1]);
}

// Tokens dropped by a capacity are neither computed nor kept: less of both than in the even step, which drops nothing.
TEST(MeasuredLoads, DroppedTokensCostNothing) {
  const Spec spec = swinging_spec(", capacity_factor: 1.5");
  const Prediction even = predicted_loads(spec);
  std::vector<RankRun> runs = runs_of(even.plan, even.trace, even.report.plan_hash, 3);
  for (RankRun& run : runs) {
    for (MeasuredStep& step : run.steps) {
      for (std::int64_t& size : step.sizes) size /= 2;
    }
  }
  const Prediction loaded = with_measured_loads(spec, even, runs);
  EXPECT_LT(loaded.report.step_time_s, even.report.step_time_s);
  EXPECT_LT(peaks(loaded)[0], peaks(even)[0]);
}

TEST(MeasuredLoads, AreNotAskedForWhereNothingIsCounted) {
  const Spec spec = swinging_spec(", capacity_factor: 1.5, pad_to_capacity: true");
  const Prediction even = predicted_loads(spec);
  const auto runs = runs_of(even.plan, even.trace, even.report.plan_hash, 3);
  EXPECT_EQ(with_measured_loads(spec, even, runs).report.step_time_s, even.report.step_time_s);
}

}  // namespace
}  // namespace orrery
