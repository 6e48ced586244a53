#include "sim/page/chart.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Chart, MarksHaveFourShapes) {
  Drawing d;
  for (std::size_t shape = 0; shape < 5; ++shape) draw_mark(d, 5, 5, shape, "#000000", "its hint");
  EXPECT_TRUE(is_closed(d.elements()));
  EXPECT_EQ(count(d.elements(), "<circle"), 2);
  EXPECT_EQ(count(d.elements(), "<path"), 3);
  EXPECT_EQ(count(d.elements(), "<title>its hint</title>"), 5);
}

TEST(Chart, InkIsReadableOnEveryColour) {
  EXPECT_EQ(ink_on("#ffffff"), "#20242c");
  EXPECT_EQ(ink_on("#f0e442"), "#20242c");
  EXPECT_EQ(ink_on("#33308f"), "#ffffff");
}

}  // namespace
}  // namespace orrery
