// Steps whose updates are validated in the next one, in time.
#include "models/plan/repeat_steps.h"

#include <gtest/gtest.h>

#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/report/report.h"
#include "tests/models/plans.h"
#include "tests/sim/layers_alone.h"

namespace orrery {
namespace {

// Consecutive steps follow at the period that the report gives for one step; a step that redoes an update takes longer
// by at most the work done before the error was known: its forwards, which fill the pipeline again.
TEST(RepeatSteps, ValidatedStepsBehindEachOtherKeepThePeriod) {
  for (const std::int64_t p : {2, 4}) {
    for (const std::int64_t m : {2 * p, 3 * p + 1}) {
      const Spec spec =
          test::spec_of(fmt::format("name: m, layers: {}, hidden: 64, heads: 8, feed_forward: 256, vocab: 256", p),
                        fmt::format("pipeline: {}, schedule: zb-h2, global_batch: {}", p, m), 32,
                        "profile: orrery, post_update_validation: true");
      const Plan plan = make_plan(spec);
      const Picoseconds f = 1000, b = 1100, w = 900;
      const Timing timing = layers_alone(plan, f, b, w);
      const auto end = [&](const std::vector<bool>& redoes_update) {
        return simulate(repeat_steps(plan, redoes_update), timing).step_time;
      };
      const Report report =
          make_report(spec, plan, simulate(plan, timing), std::vector<TransferNote>(plan.ops.size()), {});
      const Picoseconds period = end({false, false, false, false}) - end({false, false, false});
      EXPECT_NEAR(static_cast<double>(period), report.step_time_s * 1e12, 1e-3) << p << " " << m;
      std::int64_t most = 0;
      for (const RankClass& slot : plan.classes) {
        std::int64_t forwards = 0;
        for (TaskId t = slot.begin; t < slot.validated; ++t) forwards += timing.rows[0][plan.tasks[t].op].duration / f;
        most = std::max(most, forwards);
      }
      const Picoseconds more = end({false, true, false}) - end({false, false, false});
      EXPECT_GE(more, f) << p << " " << m;
      EXPECT_LE(more, (most + p - 1) * f) << p << " " << m;
    }
  }
}

}  // namespace
}  // namespace orrery
