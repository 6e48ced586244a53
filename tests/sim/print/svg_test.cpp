// The SVG writer.
#include "sim/print/svg.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/svg_reader.h"

namespace orrery {
namespace {

TEST(Svg, FittedTextIsNoWiderThanItsRoom) {
  const std::string words = "all-gather of many Megabytes WWW";
  for (const double width : {0.0, 8.0, 20.0, 60.0, 150.0, 400.0}) {
    for (const bool bold : {false, true}) {
      const TextStyle style = {.size = 10, .bold = bold};
      const std::string text = fitted(words, width, style);
      if (width >= 20) {
        EXPECT_LE(text_width(text, style), width);
      }
      EXPECT_EQ(text == words, text_width(words, style) <= width);
    }
  }
}

TEST(Svg, WrappedTextKeepsItsWords) {
  const TextStyle style = {.size = 11};
  std::string joined;
  for (const std::string& line : wrapped("one two three four five six seven", 90, style)) {
    EXPECT_LE(text_width(line, style), 90);
    joined += (joined.empty() ? "" : " ") + line;
  }
  EXPECT_EQ(joined, "one two three four five six seven");
}

TEST(Svg, NumbersHaveTwoDecimalsAtMost) {
  EXPECT_EQ(pixels(12.5), "12.5");
  EXPECT_EQ(pixels(3), "3");
  EXPECT_EQ(pixels(-0.001), "0");
  EXPECT_EQ(pixels(1.0 / 3), "0.33");
}

TEST(Svg, ColoursTellThingsApart) {
  for (const std::size_t n : {1, 2, 8, 9, 64, 128}) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < n; ++i) {
      const std::string colour = colour_of(i, n);
      ASSERT_EQ(colour.size(), 7U);
      EXPECT_EQ(colour.find_first_not_of("0123456789abcdef", 1), std::string::npos) << colour;
      seen.insert(colour);
    }
    EXPECT_EQ(seen.size(), n);
  }
}

TEST(Svg, ElementsHaveTheirHints) {
  Drawing d;
  d.rect({1, 2, 3, 4}, {{"fill", "#123456"}}, "a < b");
  d.line(0, 0, 10, 12, "#000000", 2, "3 4");
  d.path("M0 0h1", {{"fill", "#000000"}});
  d.path("", {{"fill", "#000000"}});
  d.text(0, 0, "a very long name", {.size = 10, .room = 60});
  d.text(0, 0, "short", {.size = 10, .anchor = "middle", .room = 60});
  EXPECT_EQ(d.elements(),
            "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill=\"#123456\"><title>a &lt; b</title></rect>\n"
            "<line x1=\"0\" y1=\"0\" x2=\"10\" y2=\"12\" stroke=\"#000000\" stroke-width=\"2\" "
            "stroke-dasharray=\"3 4\"/>\n"
            "<path d=\"M0 0h1\" fill=\"#000000\"/>\n"
            "<text x=\"0\" y=\"0\" font-size=\"10\" fill=\"#222222\"><title>a very long name</title>a very lo…</text>\n"
            "<text x=\"0\" y=\"0\" font-size=\"10\" fill=\"#222222\" text-anchor=\"middle\">short</text>\n");
  EXPECT_EQ(d.height(), 12);
}

TEST(Svg, APartOfADrawingStandsInAPage) {
  Drawing d;
  d.rect({0, 0, 300, 300}, {});
  EXPECT_EQ(inline_svg(d, 100, 50, "a \"drawing\""),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 50\" role=\"img\" "
            "aria-label=\"a &quot;drawing&quot;\">\n" +
                d.elements() + "</svg>\n");
}

TEST(Svg, DrawingsGrowAndNest) {
  Drawing inner;
  inner.rect({1, 2, 30, 40}, {{"fill", "#ffffff"}});
  EXPECT_EQ(inner.width(), 31);
  EXPECT_EQ(inner.height(), 42);
  const Drawing rows = in_rows({inner, inner, inner}, 70, 4);  // two in the first row, one in the second
  EXPECT_EQ(rows.width(), 66);
  EXPECT_EQ(rows.height(), 88);
  Drawing outer;
  outer.open({{"class", "a \"quoted\" one"}});
  outer.add(rows, 5, 6);
  outer.close();
  const auto elements = test::SvgReader::read(svg_file(outer, "a < b", 10));
  EXPECT_EQ(elements[0].figure("width"), 66 + 5 + 20);
  EXPECT_EQ(elements[1].text, "a < b");
  std::vector<std::pair<double, double>> corners;
  for (const test::SvgElement& e : elements) {
    if (e.tag == "rect" && e.parent > 0) corners.emplace_back(e.x + e.figure("x"), e.y + e.figure("y"));
    if (e.attributes.contains("class")) {
      EXPECT_EQ(e.attribute("class"), "a \"quoted\" one");
    }
  }
  const std::vector<std::pair<double, double>> expected = {{16, 18}, {51, 18}, {16, 64}};
  EXPECT_EQ(corners, expected);
}

}  // namespace
}  // namespace orrery
