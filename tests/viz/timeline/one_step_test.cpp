#include "viz/timeline/one_step.h"

#include <algorithm>

#include <fmt/format.h>
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
// ends 1,560 us after it. Its operators and launches begin before its kernels and are shown too.
TEST(OneStep, HasTheKernelsThatItLaunched) {
  const Timeline whole = traces::read({traces::TorchTrace(traces::kLayouts[3], 0).text(4)});
  const Launches launches = launches_of(whole);
  const Steps steps(whole, launches);
  const FirstAndSteady shown = first_and_steady_step(whole, steps);
  EXPECT_EQ(shown.first, 0);
  EXPECT_EQ(shown.steady, 2);  // the middle one of three that are equally long
  for (const int step : {0, 2}) {
    const Timeline one = one_step(whole, steps, step);
    EXPECT_EQ(kernels_of(one), 5u);
    const Launches own = launches_of(one);
    EXPECT_EQ(Steps(one, own).count(), 1);
    Picoseconds first = one.end, last = 0, earliest = one.end;
    for (EventId e = 0; e < one.events(); ++e) {
      earliest = std::min(earliest, one.begins[e]);
      EXPECT_LE(one.ends[e], one.end);
      if (!works(one, e)) continue;
      first = std::min(first, one.begins[e]);
      last = std::max(last, one.ends[e]);
    }
    EXPECT_EQ(earliest, 0);
    EXPECT_GT(first, 0);
    EXPECT_EQ(last - first, 950'000'000);
  }
}

// A step in which the profiler saw no kernel is not one of the two.
TEST(OneStep, WithoutWorkIsNotShown) {
  const auto steps_of = [](const std::string& kernels) {
    std::string marks;
    for (int i = 0; i < 4; ++i)
      marks += fmt::format(
          R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 1, "tid": 1, "ts": {}, "dur": 100}},)",
          i, 100 * i);
    const Timeline t = traces::read({"{\"traceEvents\": [" + marks + kernels + "]}"});
    return first_and_steady_step(t, Steps(t, Launches{}));
  };
  const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )";
  const FirstAndSteady two = steps_of(kernel + R"(110, "dur": 5}, )" + kernel + R"(310, "dur": 9})");
  EXPECT_EQ(two.first, 1);
  EXPECT_EQ(two.steady, 3);
  EXPECT_EQ(steps_of(kernel + R"(210, "dur": 5})").first, -1);
}

TEST(OneStep, OfATraceOfOneStepThereIsNoSteadyOne) {
  const Timeline t = two_lanes();
  const Launches none;
  EXPECT_EQ(first_and_steady_step(t, Steps(t, none)).steady, -1);
}
