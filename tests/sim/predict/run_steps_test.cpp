#include "sim/predict/run_steps.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/repeat_steps.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

Spec stepped_spec(const std::string& strategy) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, strategy: {" +
          strategy + "}}",
      "steps.yaml");
}

// The first step of a run is the step that is predicted; a later one is no longer, since its host has worked ahead.
TEST(RunSteps, TheFirstIsTheOneThatIsPredicted) {
  for (const char* strategy : {"tensor: 2, pipeline: 2, global_batch: 16, sharding: zero1", "data: 8, global_batch: 16",
                               "data: 8, global_batch: 16, sharding: fsdp"}) {
    const Spec spec = stepped_spec(strategy);
    const Prediction one = predict(spec);
    const RunSteps run = steps_of_run(spec, one);
    EXPECT_EQ(run.first.trace.step_time, one.trace.step_time) << strategy;
    for (TaskId t = 0; t < one.plan.task_count(); ++t) {
      EXPECT_EQ(run.first.trace.spans[t].matched, one.trace.spans[t].matched);
      EXPECT_EQ(run.first.trace.spans[t].ended, one.trace.spans[t].ended);
    }
    EXPECT_EQ(run.first.report.time_s, one.report.time_s) << strategy;
    EXPECT_LE(run.period, one.trace.step_time) << strategy;
    EXPECT_GE(run.steady.trace.step_time, run.period) << strategy;
  }
}

// A rank's tasks of a step begin when all of its tasks of the step before have ended; other ranks may be ahead.
TEST(RunSteps, EveryRankEndsAStepBeforeItBeginsTheNext) {
  const Prediction one = predict(stepped_spec("tensor: 2, pipeline: 2, global_batch: 16, sharding: zero1"));
  const Plan two = repeat_in_turn(one.plan, 2);
  const Trace trace = simulate(two, one.costs.timing);
  Picoseconds all = 0, earliest = trace.step_time;
  for (const RankClass& slot : two.classes) {
    const TaskId next = slot.begin + (slot.end - slot.begin) / 2;
    Picoseconds end = 0;
    for (TaskId t = slot.begin; t < next; ++t) end = std::max(end, trace.spans[t].ended);
    for (TaskId t = next; t < slot.end; ++t) {
      EXPECT_GE(trace.spans[t].matched, end) << two.op_of(t).name;
      earliest = std::min(earliest, trace.spans[t].matched);
    }
    all = std::max(all, end);
  }
  EXPECT_LT(earliest, all);
}

// The time of a steady step goes from the end of one step to the end of the next. A stage that ends its step before the
// others begins the next one while they still work, which is no launch: hosts have issued work ahead.
TEST(RunSteps, TheTimeOfASteadyStepIsItsPeriods) {
  const Spec spec = stepped_spec("tensor: 2, pipeline: 2, global_batch: 16, sharding: zero1");
  const RunSteps run = steps_of_run(spec, predict(spec));
  double sum = 0;
  for (const double time : run.steady.report.time_s) sum += time;
  EXPECT_NEAR(sum, run.steady.report.step_time_s, 1e-9);
  EXPECT_EQ(run.steady.report.step_time_s, seconds(run.period));
  EXPECT_GT(run.steady.trace.step_time, run.period);
  const auto launch = static_cast<std::size_t>(TimeKind::launch), compute = static_cast<std::size_t>(TimeKind::compute);
  EXPECT_LT(run.steady.report.time_s[launch], run.first.report.time_s[launch]);
  // Products take about as long, beside other transfers than in the first step.
  EXPECT_NEAR(run.steady.report.time_s[compute] / run.first.report.time_s[compute], 1, 0.02);
  Picoseconds begin = run.steady.trace.step_time;
  for (TaskId t = 0; t < run.steady.plan.task_count(); ++t) {
    const Span& span = run.steady.trace.spans[t];
    EXPECT_GE(span.entered, 0);
    EXPECT_LE(span.entered, span.matched);
    EXPECT_LE(span.ended, run.steady.trace.step_time);
    if (span.ended > span.matched) begin = std::min(begin, span.matched);
  }
  EXPECT_GE(begin, 0);
}

TEST(RunSteps, OfGeneratedTextAndAsynchronousUpdatesAreRefused) {
  const Spec spec = stepped_spec("pipeline: 4, data: 2, clip: 0, schedule: pipedream, global_batch: 16");
  EXPECT_THROW(steps_of_run(spec, predict(spec)), Error);
  const Spec text = parse_spec(
      "{model: gpt2, workload: generate, generate: {batch: 8, input: 64, output: 4}, cluster: {node: dgx-a100, nodes: "
      "1}, "
      "strategy: {data: 8}}",
      "text.yaml");
  EXPECT_THROW(steps_of_run(text, predict(spec)), Error);
}

}  // namespace
}  // namespace orrery
