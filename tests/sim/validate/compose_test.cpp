#include "sim/validate/compose.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "tests/sim/small_plans.h"

namespace orrery {
namespace {

Spec spec_of(const std::string& strategy) {
  return parse_spec(
      "model: {name: tiny, layers: 4, hidden: 256, heads: 4, feed_forward: 512, vocab: 512}\nsequence: 256\n"
      "cluster: {node: dgx-h100, nodes: 1}\nsoftware: orrery\nstrategy: {" +
          strategy + "}\n",
      "test");
}

// Files of ranks that ran one by one, each task `factor` times as long as predicted; the first step is slow.
std::vector<RankRun> alone(const Prediction& p, double factor) {
  std::vector<RankRun> runs;
  for (std::uint32_t s = 0; s < p.plan.classes.size(); ++s) {
    RankRun run{.source = "composed", .plan_hash = p.report.plan_hash, .rank = s, .ranks = p.plan.ranks};
    run.memory.peak = p.report.memory.ranks[s].memory.peak;
    Picoseconds now = 1000;
    for (const double slow : {3.0, 1.0, 1.0, 1.5}) {
      MeasuredStep& step = run.steps.emplace_back();
      step.begin = now;
      for (TaskId t = p.plan.classes[s].begin; t < p.plan.classes[s].end; ++t) {
        const auto duration = static_cast<double>(p.costs.timing.of(s, p.plan.tasks[t].op).duration);
        const Picoseconds begin = now;
        now += static_cast<Picoseconds>(duration * slow * factor + 0.5);
        step.spans.push_back({begin, begin, now});
      }
      step.end = now;
    }
    runs.push_back(run);
  }
  return runs;
}

constexpr const char* kComposedStrategies[] = {"data: 1, global_batch: 2", "tensor: 2, data: 1, global_batch: 2",
                                               "pipeline: 4, data: 1, global_batch: 8",
                                               "data: 4, sharding: zero3, global_batch: 8"};

// Ranks that compute as predicted make the predicted step.
TEST(Compose, OfPredictedDurationsIsThePrediction) {
  for (const char* strategy : kComposedStrategies) {
    const Spec spec = spec_of(strategy);
    const Prediction p = predict(spec, true);
    const std::vector<RankRun> runs = alone(p, 1);
    const Trace trace = compose(p, runs);
    EXPECT_EQ(trace.step_time, p.trace.step_time) << strategy;
    EXPECT_EQ(trace.source, "composed");
    const Composed c = compare_composed(spec, p, runs);
    EXPECT_EQ(c.report.source, "composed");
    EXPECT_EQ(c.ranks.size(), p.plan.classes.size());
    EXPECT_NEAR(worst_compute_error(c), 0, 1e-9);
    for (const ComposedRank& r : c.ranks) EXPECT_EQ(r.memory_error(), 0);
  }
}

TEST(Compose, TakesTheMeasuredCompute) {
  const Spec spec = spec_of(kComposedStrategies[2]);
  const Prediction p = predict(spec, true);
  const Composed c = compare_composed(spec, p, alone(p, 2));
  EXPECT_NEAR(worst_compute_error(c), 0.5, 1e-6);
  EXPECT_GT(c.composed_step, 1.2 * c.predicted_step);  // host and link times do not change
  EXPECT_LT(c.composed_step, 2.0 * c.predicted_step);
}

TEST(Compose, HasATableOfItsOwn) {
  const Spec spec = spec_of(kComposedStrategies[1]);
  const Prediction p = predict(spec, true);
  const std::string text = composed_table({compare_composed(spec, p, alone(p, 1.25))}, {});
  EXPECT_NE(text.find("-20.0"), std::string::npos) << text;
  EXPECT_NE(text.find("not a measured step"), std::string::npos);
}

}  // namespace
}  // namespace orrery
