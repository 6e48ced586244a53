#include "viz/read/measured_step.h"

#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "sim/export/chrome_trace.h"
#include "sim/validate/replay.h"
#include "sim/validate/validation.h"
#include "tests/sim/fake_runs.h"
#include "tests/temporary_folder.h"
#include "viz/read/load.h"

using namespace orrery;

namespace {

// A plan of all ranks, and a step of it with times that no prediction has.
struct MadeStep {
  Plan plan = unfold(small_plan(small_strategies()[1]));
  Trace trace = simulate(plan, random_timing(plan, 5, 1'000'000));
};

Timeline read_back(const test::TemporaryFolder& folder, const MadeStep& m, bool file_per_rank) {
  write_chrome_trace(folder.path("t.json"), m.plan, m.trace, {}, {.file_per_slot = file_per_rank});
  std::vector<std::string> files = {folder.path("t.json")};
  if (file_per_rank) {
    files.clear();
    for (const RankClass& s : m.plan.classes)
      files.push_back(folder.path(fmt::format("t_rank{}.json", s.representative)));
  }
  return open_trace(files).timeline;
}

}  // namespace

TEST(MeasuredStep, ATraceOfOursTellsEveryTask) {
  const test::TemporaryFolder folder;
  const MadeStep m;
  for (const bool file_per_rank : {false, true}) {
    const MeasuredTasks tasks = tasks_of(m.plan, read_back(folder, m, file_per_rank));
    EXPECT_EQ(tasks.why_not, "");
    ASSERT_EQ(tasks.trace.spans.size(), m.trace.spans.size());
    for (TaskId t = 0; t < m.plan.task_count(); ++t) {
      EXPECT_EQ(tasks.trace.spans[t].issued, m.trace.spans[t].issued);
      EXPECT_EQ(tasks.trace.spans[t].entered, m.trace.spans[t].entered);
      EXPECT_EQ(tasks.trace.spans[t].matched, m.trace.spans[t].matched);
      EXPECT_EQ(tasks.trace.spans[t].ended, m.trace.spans[t].ended);
      const TaskId cause = m.trace.spans[t].cause;  // not written to the trace if the launch came after the cause
      if (cause != kNone && m.trace.spans[cause].ended >= m.trace.spans[t].issued) {
        EXPECT_EQ(tasks.trace.spans[t].cause, cause);
      }
    }
    EXPECT_NEAR(static_cast<double>(tasks.trace.step_time), static_cast<double>(m.trace.step_time), 1000);
    EXPECT_EQ(replay(m.plan, tasks.trace).step_time, replay(m.plan, m.trace).step_time);
  }
}

TEST(MeasuredStep, SaysWhyATraceIsNotOfThePlan) {
  const test::TemporaryFolder folder;
  const MadeStep m;
  const Timeline t = read_back(folder, m, false);
  EXPECT_NE(tasks_of(unfold(small_plan(small_strategies()[0])), t).why_not, "");
  EXPECT_NE(tasks_of(m.plan, Timeline()).why_not, "");
}

// The engine's error is that of the engine alone: what it made up itself it plays again without any, however far the
// prediction's durations are off; and the figures are validate's.
TEST(MeasuredStep, TellsTheEnginesErrorFromTheDurations) {
  const MadeStep m;
  Prediction p;
  p.plan = m.plan;
  p.trace = simulate(m.plan, random_timing(m.plan, 9, 0));
  const PredictionError e = prediction_error(p, m.trace);
  EXPECT_NEAR(e.engine, 0, 0.002);
  EXPECT_EQ(e.engine, relative_error(seconds(replay(p.plan, m.trace).step_time), seconds(m.trace.step_time)));
  EXPECT_EQ(e.cost, cost_error(kind_errors(p, m.trace)));
  EXPECT_GT(e.cost, 0.05);
  EXPECT_EQ(e.step, relative_error(seconds(p.trace.step_time), seconds(m.trace.step_time)));
  EXPECT_EQ(prediction_error({.plan = p.plan, .trace = m.trace}, m.trace).cost, 0);
}
