// When the host issues tasks, of which a part of the launch time keeps it busy.
#include "sim/memory/host_times.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

TEST(HostTimes, CountAShareOfTheLaunchTimeSinceTheLastWait) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "global_batch: 4"));
  Trace trace;
  trace.spans.resize(plan.task_count());
  trace.host.resize(plan.classes.size());
  const TaskId last = plan.task_count() - 1;
  trace.spans[last] = {.issued = 1000, .entered = 1500, .matched = 1500, .ended = 1600};
  trace.spans[0].entered = 1200;
  trace.host[0] = {{last, 400, 0}};
  MemoryOptions options;
  EXPECT_EQ(HostTimes(plan, trace, options, 0).issue(last), 1000);
  options.host_part = 0.5;
  const HostTimes host(plan, trace, options, 0);
  EXPECT_EQ(host.issue(last), 400 + 300);
  EXPECT_EQ(host.now(last, kNone, false, 50), 750);
  EXPECT_EQ(host.now(last, 0, false, 0), 1200) << "no room in the launch queue before";
  EXPECT_EQ(host.now(last, 0, true, 0), 1500) << "the host reads the task's result first";
}

// Time that holds up hosts for which the device waits does not hold up others: after a wait, the host runs ahead from
// the last task on for which the device waited. Before the first wait it does not.
TEST(HostTimes, RunAheadWhereTheDeviceIsSlower) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "global_batch: 4"));
  Trace trace;
  trace.spans.resize(plan.task_count());
  trace.host.resize(plan.classes.size());
  const TaskId last = plan.classes[0].end - 1;
  for (TaskId t = 0; t <= last; ++t) trace.spans[t] = {.issued = 100 * t, .entered = 100 * t + 50};
  TaskId awaited = last / 2;
  while (plan.op_of(awaited).lane != LaneKind::compute) ++awaited;
  trace.spans[awaited].entered = trace.spans[awaited].issued;
  const TaskId resumed = awaited - 2;
  trace.host[0] = {{resumed, 100 * resumed, 0}};
  MemoryOptions options;
  options.host_part = 0.5;
  options.filling_part = 0.1;
  const HostTimes host(plan, trace, options, 0);
  EXPECT_EQ(host.issue(resumed - 1), 50 * (resumed - 1));
  EXPECT_EQ(host.issue(awaited), 100 * resumed + 100);
  EXPECT_EQ(host.issue(awaited + 1), 100 * resumed + 150);
  EXPECT_EQ(host.issue(awaited + 11), 100 * resumed + 150 + 100);
}

}  // namespace
}  // namespace orrery
