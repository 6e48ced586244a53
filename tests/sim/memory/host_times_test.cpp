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

}  // namespace
}  // namespace orrery
