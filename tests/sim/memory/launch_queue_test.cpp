// Which task must have begun before the host can launch the next one.
#include "sim/memory/launch_queue.h"

#include <gtest/gtest.h>

#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

TEST(LaunchQueue, HoldsAsManyLaunchesAsTheDevice) {
  TinyPlan tiny;
  const std::uint32_t kernel = tiny.op("kernel", LaneKind::compute, {});
  const std::uint32_t collective = tiny.op("collective", LaneKind::tensor, {});
  tiny.slot(0);
  for (TaskId t = 0; t < kLaunchQueue; ++t) tiny.task(kernel);
  const TaskId last = tiny.task(collective), next = tiny.task(kernel);
  tiny.finish();
  LaunchQueue queue(tiny.plan());
  for (int step = 0; step < 2; ++step) {
    queue.restart(0);
    for (TaskId t = 0; t < kLaunchQueue; ++t) EXPECT_EQ(queue.add(t), kNone) << t;
    EXPECT_EQ(queue.add(last), 4U) << "one kernel, two records and two waits take the places of five tasks";
    EXPECT_EQ(queue.add(next), 5U);
  }
}

}  // namespace
}  // namespace orrery
