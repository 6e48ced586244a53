#include "sim/report/steps_overlap.h"

#include <gtest/gtest.h>

#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

// Two stages work for 10 us each, the second 4 us later: a step takes 14 us, and the next begins 10 us after it. The
// time by which they overlap is one of waiting.
TEST(StepsOverlap, ByWhatStagesWaitAtTheirEnds) {
  constexpr Picoseconds kLate = 4'000'000, kWork = 10'000'000;
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = kWork});
  for (const std::int64_t stage : {0, 1}) {
    p.slot(stage);
    p.task(work);
  }
  p.finish();
  Trace trace;
  trace.spans = {{0, 0, 0, kWork, kNone}, {0, kLate, kLate, kLate + kWork, kNone}};
  trace.step_time = kLate + kWork;
  Report r;
  r.step_time_s = seconds(trace.step_time);
  r.time_s[static_cast<std::size_t>(TimeKind::compute)] = seconds(kWork);
  r.time_s[static_cast<std::size_t>(TimeKind::bubble)] = 3e-6;
  r.time_s[static_cast<std::size_t>(TimeKind::exposed_data)] = 1e-6;
  overlap_steps(r, p.plan(), trace);
  EXPECT_DOUBLE_EQ(r.step_time_s, seconds(kWork));
  EXPECT_EQ(r.time_s[static_cast<std::size_t>(TimeKind::bubble)], 0);
  EXPECT_NEAR(r.time_s[static_cast<std::size_t>(TimeKind::exposed_data)], 0, 1e-15);
  EXPECT_DOUBLE_EQ(r.time_s[static_cast<std::size_t>(TimeKind::compute)], seconds(kWork));
}

// The frozen model works for 6 us and the other one for 10 us after it: a step by itself takes 16 us, but the frozen
// model works for the next step meanwhile, so that steps follow each other every 10 us.
TEST(StepsOverlap, OfTwoModelsOnRanksOfTheirOwn) {
  constexpr Picoseconds kTrained = 10'000'000, kFrozen = 6'000'000;
  TinyPlan p;
  const auto trained = p.op("trained", LaneKind::compute, {.duration = kTrained});
  const auto frozen = p.op("frozen", LaneKind::compute, {.duration = kFrozen});
  const auto handed = p.op("hand-over", LaneKind::hand_over, {.duration = 0});
  p.slot(0, 3);
  const TaskId receive = p.task(handed);
  p.task(trained, {receive});
  p.slot(1, 1);
  const TaskId made = p.task(frozen);
  const TaskId send = p.task(handed, {made});
  p.match({receive, send});
  p.finish();
  EXPECT_EQ(p.run().step_time, kTrained + kFrozen);
  EXPECT_EQ(period_of_models(p.plan(), p.timing()), kTrained);
  Plan plan = p.plan();
  plan.classes[1].second = true;
  Report r;
  r.models.resize(2);
  r.models[0].time_s[static_cast<std::size_t>(TimeKind::compute)] = 7.5e-6;
  r.models[0].time_s[static_cast<std::size_t>(TimeKind::bubble)] = 4.5e-6;
  r.models[1].time_s[static_cast<std::size_t>(TimeKind::compute)] = 1.5e-6;
  r.models[1].time_s[static_cast<std::size_t>(TimeKind::bubble)] = 2.5e-6;
  overlap_models(r, plan, 6e-6);
  EXPECT_NEAR(r.models[0].time_s[static_cast<std::size_t>(TimeKind::bubble)], 0, 1e-12);
  EXPECT_NEAR(r.models[1].time_s[static_cast<std::size_t>(TimeKind::bubble)], 1e-6, 1e-12);
  EXPECT_NEAR(r.time_s[static_cast<std::size_t>(TimeKind::bubble)], 1e-6, 1e-12);
  EXPECT_NEAR(r.time_s[static_cast<std::size_t>(TimeKind::compute)], 9e-6, 1e-12);
}

}  // namespace
}  // namespace orrery
