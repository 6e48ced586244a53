#include "sim/page/svg.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Svg, CoordinatesAreRoundedToATenth) {
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(7.0001), "7");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(100), "100");
}

TEST(Svg, DrawsWhatIsAskedFor) {
  ChartDrawing d(100, 50);
  d.rectangle(1, 2, 3, 4, "#123456", "a < b");
  d.line(0, 0, 10, 10, "#000000", 2, "3 4");
  d.path("M0 0h1", "fill=\"#000000\"");
  d.path("", "fill=\"#000000\"");
  for (std::size_t shape = 0; shape < 5; ++shape) d.mark(5, 5, shape, "#000000", "title");
  const std::string svg = d.svg("a \"drawing\"");
  EXPECT_TRUE(is_closed(svg));
  EXPECT_TRUE(has(svg, "viewBox=\"0 0 100 50\""));
  EXPECT_TRUE(has(svg, "aria-label=\"a &quot;drawing&quot;\""));
  EXPECT_TRUE(has(svg, "<title>a &lt; b</title></rect>"));
  EXPECT_TRUE(has(svg, "stroke-dasharray=\"3 4\""));
  EXPECT_EQ(count(svg, "<circle"), 2);
  EXPECT_EQ(count(svg, "<path"), 4);
}

TEST(Svg, ATextThatHasNoRoomIsCutAndShownWhole) {
  ChartDrawing d(100, 50);
  d.text(0, 0, "äöü a very long name", Anchor::end, 10, 60);
  d.text(0, 0, "short", Anchor::middle, 10, 60);
  const std::string svg = d.svg("");
  EXPECT_TRUE(has(svg, "<title>äöü a very long name</title>äöü a ver…</text>")) << svg;
  EXPECT_TRUE(has(svg, "text-anchor=\"middle\">short</text>"));
}

TEST(Svg, InkIsReadableOnEveryColour) {
  EXPECT_EQ(ink_on("#ffffff"), "#20242c");
  EXPECT_EQ(ink_on("#f0e442"), "#20242c");
  EXPECT_EQ(ink_on("#33308f"), "#ffffff");
}

}  // namespace
}  // namespace orrery
