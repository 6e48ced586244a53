#include "sim/validate/replay.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "sim/runs/measured.h"
#include "tests/sim/fake_runs.h"

namespace orrery {
namespace {

// A step simulated by the engine, read back from the ranks' files and replayed, takes the same time.
TEST(Replay, OfASimulatedStepHasNoError) {
  for (const std::string& strategy : small_strategies()) {
    const Plan folded = small_plan(strategy), plan = unfold(folded);
    for (const Picoseconds issue : {Picoseconds{0}, Picoseconds{1'000'000}}) {
      const Trace trace = simulate(plan, random_timing(plan, 11, issue));
      const auto runs = runs_of(plan, trace, plan_hash(folded), 3);
      const Trace measured = measured_trace(plan, runs, 0);
      const Trace again = replay(plan, measured);
      EXPECT_NEAR(static_cast<double>(again.step_time) / static_cast<double>(trace.step_time), 1, 0.002)
          << strategy << ", issue " << issue;
    }
  }
}

// A rank's thread needs time between tasks: the replay has the same time there.
TEST(Replay, WaitsBetweenTasksAsTheRankDid) {
  constexpr Picoseconds kGap = 5'000'000;
  const Plan folded = make_plan(
      parse_spec("model: {name: small, layers: 8, hidden: 64, heads: 4, feed_forward: 256, vocab: 512}\nsequence: 128\n"
                 "cluster: {node: dgx-a100, nodes: 1}\ngpus: 1\nstrategy: {global_batch: 4}\n",
                 "small.yaml"));
  const Plan plan = unfold(folded);
  const Trace even = simulate(plan, random_timing(plan, 11, 0));
  Trace late = even;
  Picoseconds later = 0;
  for (Span& s : late.spans) {
    later += kGap;
    s.entered += later;
    s.matched += later;
    s.ended += later;
  }
  late.step_time += later;
  const Trace measured = measured_trace(plan, runs_of(plan, late, plan_hash(folded), 3), 0);
  EXPECT_NEAR(static_cast<double>(measured.step_time), static_cast<double>(late.step_time), 1e-3 * 1e12);
  const double again = static_cast<double>(replay(plan, measured).step_time);
  EXPECT_NEAR(again / static_cast<double>(late.step_time), 1, 0.005);
  EXPECT_GT(again, static_cast<double>(even.step_time + later / 10 * 9));
}

// A replay follows the measured durations: with one task twice as long the step differs.
TEST(Replay, FollowsTheMeasuredDurations) {
  const Plan plan = unfold(small_plan(small_strategies()[1]));
  const Trace trace = simulate(plan, random_timing(plan, 11, 0));
  Trace longer = trace;
  for (Span& s : longer.spans) s.ended += s.ended - s.matched;
  EXPECT_GT(replay(plan, longer).step_time, trace.step_time * 3 / 2);
}

}  // namespace
}  // namespace orrery
