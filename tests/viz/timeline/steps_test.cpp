#include "viz/timeline/steps.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"
#include "tests/viz/traces.h"

using namespace orrery;

// The optimizer's kernels run 500 us after the end of their step on the host.
TEST(Steps, AKernelIsOfTheStepThatLaunchedIt) {
  const Timeline t = traces::read({traces::TorchTrace(traces::kLayouts[3], 0).text(3)});
  const Launches launches = launches_of(t);
  const Steps steps(t, launches);
  EXPECT_EQ(steps.count(), 3);
  EXPECT_EQ(steps.mean_time(), 1'000'000'000);
  std::array<int, 3> kernels{};
  for (EventId e = 0; e < t.events(); ++e) {
    if (!works(t, e)) continue;
    const int step = steps.of(e, t.tracks[track_of(t, e)].process);
    ASSERT_GE(step, 0);
    ++kernels[static_cast<std::size_t>(step)];
  }
  EXPECT_EQ(kernels, (std::array<int, 3>{5, 5, 5}));
  EXPECT_EQ(steps.first_work(), 610'000'000);
  const Launches none;
  const Steps by_begin(t, none);
  const EventId last = traces::event_named(t, "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>()");
  EXPECT_EQ(by_begin.of(last, t.tracks[track_of(t, last)].process), 1);
}

TEST(Steps, ATraceWithoutMarksIsOneStep) {
  const Timeline t = two_lanes();
  const Launches none;
  const Steps steps(t, none);
  EXPECT_EQ(steps.count(), 1);
  EXPECT_EQ(steps.mean_time(), t.end);
  EXPECT_EQ(steps.of(0, 0), 0);
}

TEST(Steps, OfASimulationAreEquallyLong) {
  Timeline t = two_lanes();
  t.step_time = 30'000'000;
  const Launches none;
  const Steps steps(t, none);
  EXPECT_EQ(steps.count(), 2);
  EXPECT_EQ(steps.of(0, 0), 0);
  EXPECT_EQ(steps.of(2, 0), 1);  // begins at 30 us
}
