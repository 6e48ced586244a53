#include "sim/replay.h"

#include <gtest/gtest.h>

#include "models/unfold.h"
#include "sim/measured.h"
#include "tests/sim/fake_runs.h"

namespace orrery {
namespace {

// What the engine itself made up, read back from the ranks' files and played again, takes as long as it took.
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

// A step of which one task is twice as long is not what the engine replays from the others' durations.
TEST(Replay, FollowsTheMeasuredDurations) {
  const Plan plan = unfold(small_plan(small_strategies()[1]));
  const Trace trace = simulate(plan, random_timing(plan, 11, 0));
  Trace longer = trace;
  for (Span& s : longer.spans) s.ended += s.ended - s.matched;
  EXPECT_GT(replay(plan, longer).step_time, trace.step_time * 3 / 2);
}

}  // namespace
}  // namespace orrery
