#include "sim/page/legend.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Legend, NamesEveryColour) {
  const std::string legend = legend_markup({{"#111111", "a & b"}, {"#222222", "c"}});
  EXPECT_TRUE(is_closed(legend));
  EXPECT_TRUE(has(legend, "background:#111111\"></i>a &amp; b"));
  EXPECT_EQ(legend_markup({}), "");
}

TEST(Legend, AChartIsAFigureWithACaption) {
  const std::string chart = chart_markup("<svg></svg>", "", "so < it is");
  EXPECT_TRUE(is_closed(chart));
  EXPECT_TRUE(has(chart, "<figcaption>so &lt; it is</figcaption>"));
  EXPECT_FALSE(has(chart_markup("<svg></svg>", "", ""), "figcaption"));
}

}  // namespace
}  // namespace orrery
