#include "sim/engine/moving_times.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

TEST(MovingTimes, TheEarliestIsFoundWhereverTimesMove) {
  constexpr std::uint32_t kThings = 37;
  MovingTimes times(kThings);
  EXPECT_EQ(times.earliest(), MovingTimes::kNone);
  std::vector<Picoseconds> expected(kThings, MovingTimes::kNone);
  for (std::uint64_t step = 0; step < 10'000; ++step) {
    const auto thing = static_cast<std::uint32_t>(test::random_bits(3 * step) % kThings);
    const bool none = test::random_bits(3 * step + 1) % 8 == 0;
    expected[thing] = none ? MovingTimes::kNone : static_cast<Picoseconds>(test::random_bits(3 * step + 2) % 1000);
    times.move(thing, expected[thing]);
    ASSERT_EQ(times.earliest(), *std::min_element(expected.begin(), expected.end()));
    ASSERT_EQ(expected[times.first()], times.earliest());
  }
  EXPECT_EQ(MovingTimes(0).earliest(), MovingTimes::kNone);
}

}  // namespace
}  // namespace orrery
