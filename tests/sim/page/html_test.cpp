#include "sim/page/html.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Html, ATableHasAHeadAndARowForEachRow) {
  const Table t{{{"name", "", Align::left}, {"time", "s"}}, {{"a<b", "1.5"}, {"short"}}};
  const std::string markup = table_markup(t, {"#123456"});
  EXPECT_TRUE(is_closed(markup));
  EXPECT_EQ(count(markup, "<tr>"), 3);
  EXPECT_EQ(count(markup, "<td"), 4);
  EXPECT_TRUE(has(markup, "time<small>s</small>"));
  EXPECT_TRUE(has(markup, "background:#123456\"></i>a&lt;b"));
  EXPECT_EQ(count(markup, "swatch"), 1);
  EXPECT_EQ(table_markup({{{"name"}}, {}}), "");
  const auto cell = [](std::size_t row, std::size_t column) { return row == 1 && column == 1 ? "<b>x</b>" : ""; };
  EXPECT_TRUE(has(table_markup(t, {}, cell), "<td>short</td><td class=\"n\"><b>x</b></td>"));
  EXPECT_FALSE(has(table_markup({{{}, {}}, {{"a", "b"}}}), "<thead>"));
}

TEST(Html, AFigureHasItsExactValue) {
  EXPECT_EQ(figure("time_s.compute", 0.1, "0.10 s"), "<data id=\"time_s.compute\" value=\"0.1\">0.10 s</data>");
}

TEST(Html, ASectionIsATitleLinesAndATable) {
  const std::string markup = section_markup({"Title & more", {"first", "  deeper"}, {{{"a"}}, {{"1"}}}, {"after"}});
  EXPECT_TRUE(is_closed(markup));
  EXPECT_TRUE(has(markup, "<h2>Title &amp; more</h2>"));
  EXPECT_TRUE(has(markup, "<p class=\"in\">deeper</p>"));
  EXPECT_LT(markup.find("first"), markup.find("<table>"));
  EXPECT_LT(markup.find("<table>"), markup.find("after"));
  EXPECT_TRUE(has(section_markup({"small letter", {"line"}, {}, {}}), "<h2>Small letter</h2>"));
  EXPECT_EQ(section_markup({"Title alone", {}, {}, {}}), "");
}

TEST(Html, FoldedPartsSayWhetherTheyAreOpen) {
  EXPECT_TRUE(has(folded("a", "b", true), "<details open=\"open\">"));
  EXPECT_TRUE(has(folded("a", "b"), "<details>"));
  EXPECT_TRUE(is_closed(folded("a", paragraph("b"))));
}

}  // namespace
}  // namespace orrery
