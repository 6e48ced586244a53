#include "viz/draw/geometry.h"

#include <gtest/gtest.h>

using namespace orrery;

namespace {
constexpr Picoseconds kTotal = 5'000'000'000'000;
}

TEST(Geometry, ZoomKeepsTheMomentUnderTheCursor) {
  for (const double x : {10.0, 400.0, 1000.0, 1490.0}) {
    TimeScale s{kTotal / 3, kTotal / 2, 1500};
    for (int i = 0; i < 40; ++i) {
      const Picoseconds before = s.time_of(x);
      s = zoomed(s, x, i % 4 == 3 ? 1.1 : 0.8, kTotal);
      EXPECT_NEAR(static_cast<double>(s.time_of(x) - before), 0, s.picoseconds_per_pixel() + 2);
    }
  }
}

TEST(Geometry, StaysInsideTheTrace) {
  TimeScale s{0, kTotal, 1000};
  EXPECT_EQ(zoomed(s, 500, 100, kTotal).end, kTotal);
  s = zoomed(s, 0, 0.25, kTotal);
  EXPECT_EQ(s.begin, 0);
  EXPECT_EQ(panned(s, -5000, kTotal).begin, 0);
  EXPECT_EQ(panned(s, 1e6, kTotal).end, kTotal);
  for (int i = 0; i < 400; ++i) s = zoomed(s, 333, 0.5, kTotal);
  EXPECT_EQ(s.end - s.begin, kShortestView);
}

TEST(Geometry, TicksAreRoundAndFarEnoughApart) {
  for (Picoseconds length = 1000; length < kTotal; length = length * 7 / 3) {
    const TimeScale s{0, length, 1600};
    const Picoseconds step = tick_distance(s, 100);
    EXPECT_GE(static_cast<double>(step) / s.picoseconds_per_pixel(), 99.0);
    EXPECT_LE(static_cast<double>(step) / s.picoseconds_per_pixel(), 100.0 * 2.6 + 1 / s.picoseconds_per_pixel());
    Picoseconds digits = step;
    while (digits % 10 == 0) digits /= 10;
    EXPECT_TRUE(digits == 1 || digits == 2 || digits == 5) << step;
  }
}

TEST(Geometry, FocusShowsTheEventWithRoom) {
  const TimeScale s = focused({0, kTotal, 800}, 1'000'000'000, 1'800'000'000, kTotal);
  EXPECT_LT(s.begin, 1'000'000'000);
  EXPECT_GT(s.end, 1'800'000'000);
}
