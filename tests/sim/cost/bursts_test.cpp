#include "sim/cost/bursts.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr double kLoad = 0.3;

// Plays the bursts of one domain, of which one began `phase` of a period before.
Seconds played(Seconds work, Seconds burst, double phase) {
  const Seconds period = burst / kLoad, at = phase * period;
  Seconds time = std::max(0.0, burst - at), left = work, free = period - std::max(burst, at);
  for (; left > free; free = period - burst) {
    time += free + burst;
    left -= free;
  }
  return time + left;
}

// The mean over evenly drawn moments of one domain, and of the slower one of two.
TEST(Bursts, AreTheMeanOfWhatIsPlayed) {
  constexpr int kMoments = 400;
  for (const Seconds work : {0.1, 0.9, 1.7, 5.3}) {
    double one = 0, two = 0;
    for (int a = 0; a < kMoments; ++a) {
      const Seconds first = played(work, 1, (a + .5) / kMoments);
      one += first;
      for (int b = 0; b < kMoments; ++b) two += std::max(first, played(work, 1, (b + .5) / kMoments));
    }
    EXPECT_NEAR(time_among_bursts(work, {kLoad, 1, 1}), one / kMoments, 5e-3) << work;
    EXPECT_NEAR(time_among_bursts(work, {kLoad, 1, 2}), two / kMoments / kMoments, 5e-3) << work;
  }
}

TEST(Bursts, AreAnEvenLoadToLongTransfers) {
  EXPECT_NEAR(time_among_bursts(1e4, {kLoad, 1, 1}) * (1 - kLoad) / 1e4, 1, 1e-4);
  EXPECT_NEAR(time_among_bursts(1e4, {kLoad, 1, 64}) * (1 - kLoad) / 1e4, 1, 2e-4);
  EXPECT_EQ(time_among_bursts(7, {kLoad, 0, 64}), 7 / (1 - kLoad));
  EXPECT_EQ(time_among_bursts(7, {0, 1, 64}), 7);
}

// A short transfer of many domains waits for a whole burst.
TEST(Bursts, HoldUpWhatWaitsForTheWorstOfManyDomains) {
  EXPECT_NEAR(time_among_bursts(1e-3, {kLoad, 1, 1}), 1e-3 + kLoad / 2, 1e-3);
  EXPECT_GT(time_among_bursts(1e-3, {kLoad, 1, 64}), .9);
}

}  // namespace
}  // namespace orrery
