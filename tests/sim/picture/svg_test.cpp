// The SVG writer.
#include "sim/picture/svg.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/svg_reader.h"

namespace orrery {
namespace {

TEST(Svg, TextIsWhatXmlAllows) {
  EXPECT_EQ(xml_text("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
  EXPECT_EQ(xml_text("tab\tline\nend\x7f"), "tab?line?end?");
  EXPECT_EQ(xml_text("\u00e9\u4f60\U0001F600"), "\u00e9\u4f60\U0001F600");
  // Not UTF-8: a lone continuation, a cut character, an overlong one, a surrogate, a byte that begins none.
  EXPECT_EQ(xml_text("\x80|\xc3"), "?|?");
  EXPECT_EQ(xml_text("\xc0\xaf"), "??");
  EXPECT_EQ(xml_text("\xed\xa0\x80"), "???");
  EXPECT_EQ(xml_text("\xff"), "?");
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), "???");  // U+FFFF, which XML forbids
}

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
