#include <gtest/gtest.h>

#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

// A kernel that a transfer slows down goes on faster when the transfer has ended, and may still end in time.
TEST(SimulateUntil, IsNotLateWhereItEndsInTime) {
  TinyPlan p;
  const auto kernel = p.op("kernel", LaneKind::compute, {.duration = 100});
  const auto copy = p.op("copy", LaneKind::tensor, {.duration = 10, .pressure = 65536});
  p.slot(0);
  p.task(copy);
  p.task(kernel);
  p.finish();
  const Picoseconds step = p.run().step_time;
  EXPECT_EQ(step, 105);
  EXPECT_FALSE(simulate_until(p.plan(), p.timing(), step).late);
  EXPECT_TRUE(simulate_until(p.plan(), p.timing(), step - 1).late);
}

}  // namespace
}  // namespace orrery
