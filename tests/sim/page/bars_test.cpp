#include "sim/page/bars.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Bars, AStackedBarFillsItsWidth) {
  const std::string bar =
      stacked_bar({{"compute", 0.75, "7.5 s", "#2c6fb3"}, {"bubble", 0.25, "2.5 s", "#d4d7dc"}}, "parts");
  EXPECT_TRUE(is_closed(bar));
  EXPECT_TRUE(has(bar, "x=\"0\" y=\"0\" width=\"660\""));
  EXPECT_TRUE(has(bar, "x=\"660\" y=\"0\" width=\"220\""));
  EXPECT_TRUE(has(bar, "compute 7.5 s, 75.0 %"));
  EXPECT_EQ(count(bar, "<li>"), 2);
}

// A part that has no room for its name has it in the legend alone.
TEST(Bars, ANarrowPartHasNoNameInTheBar) {
  const std::string bar =
      stacked_bar({{"compute", 0.99, "1 s", "#2c6fb3"}, {"launch", 0.01, "1 ms", "#c3b9a4"}}, "parts");
  EXPECT_FALSE(has(bar, ">launch</text>"));
  EXPECT_TRUE(has(bar, ">compute</text>"));
  EXPECT_TRUE(has(bar, "</i>launch 1 ms, 1.0 %"));
}

TEST(Bars, ABarHasItsPiecesAndItsInterval) {
  const std::vector<Bar> bars = {{"a", 10, 8, 20, "10.00 s", {{6, "#111111"}, {4, "#222222"}}},
                                 {"b <c>", 5, 5, 5, "5.00 s", {{5, "#333333"}}}};
  const std::string chart = bar_chart(bars, time_scale(10), "times");
  EXPECT_TRUE(is_closed(chart));
  // The axis reaches from 250 to 715 for 20 s: 6 s are 139.5.
  EXPECT_TRUE(has(chart, "x=\"250\" y=\"6\" width=\"139.5\" height=\"18\" fill=\"#111111\"")) << chart;
  EXPECT_TRUE(has(chart, "x=\"389.5\" y=\"6\" width=\"93\" height=\"18\" fill=\"#222222\""));
  EXPECT_TRUE(has(chart, "x1=\"436\" y1=\"15\" x2=\"715\" y2=\"15\""));
  EXPECT_TRUE(has(chart, "b &lt;c&gt;"));
  EXPECT_EQ(bar_chart({}, time_scale(1), ""), "");
}

}  // namespace
}  // namespace orrery
