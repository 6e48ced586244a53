#include "sim/page/scatter.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Scatter, DrawsAMarkForEveryPointThatHasAPlace) {
  Scatter s{.x_name = "measured, s", .y_name = "predicted, s", .series = {"a", "b & c"}};
  s.points = {{1, 1.1, 0, "first"}, {10, 9, 1, "second < third", "2"}, {0, 5, 0, "nowhere on this axis"}};
  s.logarithmic = s.equal = true;
  const std::string markup = scatter_markup(s, "caption");
  EXPECT_TRUE(is_closed(markup));
  EXPECT_EQ(count(markup, "<circle"), 2);
  EXPECT_EQ(count(markup, "stroke-dasharray"), 2);
  EXPECT_TRUE(has(markup, "<title>second &lt; third</title>"));
  EXPECT_TRUE(has(markup, "</i>b &amp; c"));
  EXPECT_FALSE(has(markup, "nowhere"));
  EXPECT_TRUE(has(markup, ">2</text>"));
}

// Points on the diagonal lie as far to the right of the left edge as above the lower one.
TEST(Scatter, EqualAxesHaveOneScale) {
  Scatter s{.x_name = "x", .y_name = "y"};
  s.points = {{2, 2, 0, "a"}, {50, 50, 0, "b"}};
  s.logarithmic = s.equal = true;
  const std::string markup = scatter_markup(s, "");
  const std::size_t at = markup.find("cx=\"");
  ASSERT_NE(at, std::string::npos);
  const double x = std::stod(markup.substr(at + 4)), y = std::stod(markup.substr(markup.find("cy=\"", at) + 4));
  EXPECT_NEAR(x - 74, 566 - y, 0.11);
}

TEST(Scatter, OneSeriesNeedsNoLegendAndALimitIsNamed) {
  Scatter s{.x_name = "memory, GiB", .y_name = "step time, s", .series = {"one"}};
  s.points = {{30, 2, 0, "a"}};
  s.x_limit = 80;
  s.x_limit_name = "the GPU has 80 GiB";
  const std::string markup = scatter_markup(s, "");
  EXPECT_FALSE(has(markup, "<li>"));
  EXPECT_TRUE(has(markup, "the GPU has 80 GiB"));
  EXPECT_EQ(scatter_markup({}, "nothing"), "");
  s.x_limit = 400;
  EXPECT_FALSE(has(scatter_markup(s, ""), "the GPU has"));
}

// More series than colours: the ninth has the first's colour and another shape.
TEST(Scatter, ManySeriesHaveShapesToo) {
  Scatter s{.x_name = "x", .y_name = "y"};
  for (std::size_t i = 0; i < 9; ++i) {
    s.series.push_back("series " + std::to_string(i));
    s.points.push_back({1.0 + static_cast<double>(i), 1, i, ""});
  }
  const std::string markup = scatter_markup(s, "");
  EXPECT_EQ(count(markup, "<circle"), 8);
  EXPECT_EQ(count(markup, "<path"), 1);
  EXPECT_TRUE(has(markup, "■ series 8"));
}

}  // namespace
}  // namespace orrery
