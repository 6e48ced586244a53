#include "models/trace/trace.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// One slot of four tasks; the host waits at the third for the first, which ends late.
Plan plan_with_a_wait() {
  Plan plan;
  plan.ops = {{.name = "go"}, {.name = "wait", .host_waits = true}};
  plan.classes = {{.name = "only", .begin = 0, .end = 4}};
  plan.tasks = {{.op = 1},
                {.op = 0},
                {.op = 1, .first_dependency = 0},
                {.op = 1, .first_dependency = 1},
                {.first_dependency = 1}};
  plan.dependencies = {0};
  return plan;
}

TEST(LaunchStart, FollowsTheLaunchBeforeOrWhatTheHostWaitsFor) {
  const Plan plan = plan_with_a_wait();
  Trace trace;
  trace.spans = {{2, 2, 2, 50}, {5, 50, 50, 60}, {53, 60, 60, 70}, {55, 70, 70, 80}};
  EXPECT_FALSE(waits_on_host(plan, 0));  // nothing to wait for
  EXPECT_FALSE(waits_on_host(plan, 1));
  EXPECT_TRUE(waits_on_host(plan, 2));
  EXPECT_FALSE(waits_on_host(plan, 3));
  const std::vector<Picoseconds> expected = {0, 2, 50, 53};
  for (TaskId t = 0; t < 4; ++t) EXPECT_EQ(launch_start(plan, trace, t), expected[t]) << t;
  trace.spans[0].ended = 4;  // before the host comes there
  EXPECT_EQ(launch_start(plan, trace, 2), 5);
}

TEST(LastToEnter, IsTheFirstOfTheLatest) {
  Plan plan;
  plan.matches = {{0, 3}};
  plan.match_members = {4, 2, 3};
  Trace trace;
  trace.spans.resize(5);
  EXPECT_EQ(last_to_enter(plan, trace, 0), 4U);
  trace.spans[3].entered = trace.spans[2].entered = 7;
  EXPECT_EQ(last_to_enter(plan, trace, 0), 2U);
}

}  // namespace
}  // namespace orrery
