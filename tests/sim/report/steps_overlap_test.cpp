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

}  // namespace
}  // namespace orrery
