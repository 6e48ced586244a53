// DualPipe's order: closed forms of DeepSeek's table by the tests' own evaluator.
#include "models/schedule/dualpipe.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/models/plans.h"
#include "tests/models/play_orders.h"

namespace orrery {
namespace {

// DeepSeek-AI 2024, table 2: (PP / 2 - 1)(F&B + B - 3W) and PP + 1 activations. DualPipeV folds the PP stages into half
// as many, each of two; without overlap F&B takes F + B.
TEST(Dualpipe, WaitsAsTheTableSays) {
  for (const std::int64_t p : {2, 3, 4, 8, 16}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {10, 12, 8}, {10, 10, 10}, {3, 4, 2}}) {
      for (const std::int64_t m : {2 * p, 2 * p + 1, 5 * p}) {
        std::int64_t end = 0;
        for (const auto& [first, last] : test::spans_of(make_schedule("dualpipev", {p, m, 2, {}}), t))
          end = std::max(end, last);
        const std::int64_t backward = t.input + t.weight, both = t.forward + backward;
        EXPECT_EQ(end - 2 * m * both, (p - 1) * (both + backward - 3 * t.weight)) << p << " " << m << " " << t.input;
      }
    }
  }
}

TEST(Dualpipe, KeepsOneMoreThanStages) {
  for (const std::int64_t p : {2, 3, 4, 8}) {
    for (std::int64_t stage = 0; stage < p; ++stage) {
      EXPECT_LE(test::most_in_flight(dualpipe_order(p, stage, 3 * p)), 2 * p + 1) << p << " " << stage;
    }
  }
}

// Number of times that a stage's host changes from one micro-batch's ops to another's.
std::int64_t changes(const Plan& plan) {
  std::int64_t count = 0, before = -1;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Frame& frame = plan.frames[plan.tasks[t].frame];
    if (plan.op_of(t).lane != LaneKind::compute || frame.micro_batch < 0) continue;
    const std::int64_t now = 2 * frame.micro_batch + (plan.op_of(t).phase == Phase::forward ? 1 : 0);
    count += now != before ? 1 : 0;
    before = now;
  }
  return count;
}

// Woven ops alternate at each transfer: a layer with experts has two in each direction, dispatch and combine.
TEST(Dualpipe, IssuesWovenOpsInTurn) {
  const std::string model = std::string(test::kSmall) + ", moe: {experts: 4, top_k: 2, feed_forward: 32}";
  const auto plan_of = [&](const char* schedule) {
    return make_plan(test::spec_of(model, fmt::format("pipeline: 2, data: 2, expert: 2, virtual_stages: 2, "
                                                      "sharding: zero1, global_batch: 16, schedule: {}",
                                                      schedule)));
  };
  EXPECT_GT(changes(plan_of("dualpipev")), 2 * changes(plan_of("zb-v")));
}

TEST(Dualpipe, RefusesTooFewMicroBatches) { EXPECT_THROW(dualpipe_order(4, 0, 7), Error); }

}  // namespace
}  // namespace orrery
