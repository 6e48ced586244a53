// Stacks in which all kernels of a rank share one hardware queue.
#include "sim/engine/kernel_queues.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/planner/make_plan.h"
#include "tests/models/plans.h"
#include "tests/sim/small_plans.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

bool computes(const Plan& plan, TaskId t) { return plan.op_of(t).lane == LaneKind::compute; }

// Kernels of one lane are in order anyway; kernels of different lanes may overtake each other, unless one hardware
// queue keeps them in order. No kernel waits for its turn for ever, whatever the durations, because the plans are
// checked.
TEST(KernelQueues, LetKernelsBeginInOrderAndNeverDeadlock) {
  int passed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Plan plan = make_plan(test::random_spec(seed));
    Timing timing = random_timing(plan, seed, seed % 2 == 0 ? 0 : 5'000'000);
    const auto latest_before = [&](const Trace& trace, auto&& see) {
      for (const RankClass& slot : plan.classes) {
        Picoseconds sent = 0;
        for (TaskId t = slot.begin; t < slot.end; ++t) {
          const LaneKind lane = plan.op_of(t).lane;
          if (lane == LaneKind::tensor || lane == LaneKind::send_next || lane == LaneKind::send_previous ||
              reduces_gradients(lane))
            sent = std::max(sent, trace.spans[t].entered);
          if (computes(plan, t)) see(trace.spans[t].entered, sent);
        }
      }
    };
    latest_before(simulate(plan, timing), [&](Picoseconds entered, Picoseconds sent) { passed += entered < sent; });
    timing.one_queue = true;
    latest_before(simulate(plan, timing),
                  [&](Picoseconds entered, Picoseconds sent) { ASSERT_GE(entered, sent) << "seed " << seed; });
  }
  EXPECT_GT(passed, 1000);
}

// Two ranks that launch two collectives in unlike orders, of which one rank needs the second for the first: they run
// where each has a queue of its own. check_plan() lets no such plan pass.
TEST(KernelQueues, AnUncheckedPlanThatDeadlocksIsRefused) {
  TinyPlan p;
  const auto product = p.op("c", LaneKind::compute, {.duration = 10});
  const auto tensor = p.op("a", LaneKind::tensor, {.duration = 10});
  const auto context = p.op("b", LaneKind::context, {.duration = 10});
  p.slot(0);
  const TaskId first = p.task(context);
  p.task(product, {first});
  const TaskId last = p.task(tensor);
  p.slot(1);
  const TaskId needed = p.task(tensor);
  p.match({last, needed});
  p.match({first, p.task(context, {needed})});
  p.finish();
  EXPECT_EQ(p.run().step_time, 30);
  p.timing().one_queue = true;
  EXPECT_THROW(p.run(), Error);
}

}  // namespace
}  // namespace orrery
