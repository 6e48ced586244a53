#include "sim/page/axis.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(PageAxis, PlacesValues) {
  const PageAxis linear{0, 10, false, 100, 200}, up{1, 100, true, 300, 100};
  EXPECT_DOUBLE_EQ(linear.at(5), 150);
  EXPECT_DOUBLE_EQ(up.at(10), 200);
  EXPECT_DOUBLE_EQ(up.at(100), 100);
}

TEST(PageAxis, TicksAreRound) {
  EXPECT_EQ(ticks({0, 13.5}), (std::vector<double>{0, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(ticks({0, 0.3}).size(), 7U);
  EXPECT_EQ(ticks({0.5, 1000, true}), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(ticks({0.9, 11, true}), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_GE(ticks({0.21, 0.68, true}).size(), 4U);  // where 0.5 alone is such a number
  EXPECT_TRUE(ticks({1, 1}).empty());
}

TEST(PageAxis, TickTextHasNoNeedlessDecimals) {
  EXPECT_EQ(tick_text(0.30000000000000004), "0.3");
  EXPECT_EQ(tick_text(20000), "20000");
}

}  // namespace
}  // namespace orrery
