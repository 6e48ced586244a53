#include "viz/timeline/one_step.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"
#include "tests/viz/traces.h"

using namespace orrery;

namespace {

EventId kernels_of(const Timeline& t) {
  EventId count = 0;
  for (EventId e = 0; e < t.events(); ++e) count += works(t, e) ? 1 : 0;
  return count;
}

}  // namespace

// Each step of the trace has five kernels, of which the first begins 10 + 600 us after the step's mark, and the last
// ends 1,560 us after it.
TEST(OneStep, HasTheKernelsThatItLaunched) {
  const Timeline whole = traces::read({traces::TorchTrace(traces::kLayouts[3], 0).text(4)});
  const Launches launches = launches_of(whole);
  const Steps steps(whole, launches);
  ASSERT_EQ(steady_step(whole, steps), 2);  // the middle one of three that are equally long
  for (const int step : {0, 2}) {
    const Timeline one = one_step(whole, steps, step);
    EXPECT_EQ(kernels_of(one), 5u);
    EXPECT_EQ(one.end, 950'000'000);
    const Launches own = launches_of(one);
    EXPECT_EQ(Steps(one, own).count(), 1);
    Picoseconds first = one.end;
    for (EventId e = 0; e < one.events(); ++e) first = works(one, e) ? std::min(first, one.begins[e]) : first;
    EXPECT_EQ(first, 0);
  }
}

TEST(OneStep, OfATraceOfOneStepThereIsNoSteadyOne) {
  const Timeline t = two_lanes();
  const Launches none;
  EXPECT_EQ(steady_step(t, Steps(t, none)), -1);
}
