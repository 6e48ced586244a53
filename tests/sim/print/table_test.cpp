#include "sim/print/table.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

Table sample() {
  return {.columns = {{"stage", "", Align::left}, {"peak", "GiB"}, {"fits", "", Align::left}},
          .rows = {{"stage 0", "61.25", "yes"}, {"stage 10", "7.50", "no"}}};
}

TEST(Table, AlignsColumnsUnderNamesAndUnits) {
  EXPECT_EQ(print(sample()),
            "stage      peak  fits\n"
            "            GiB\n"
            "stage 0   61.25  yes\n"
            "stage 10   7.50  no\n");
}

TEST(Table, LeavesOutLinesOfNoNamesAndNoUnits) {
  const Table t{.columns = {{"", "", Align::left}, {}}, .rows = {{"a", "1"}, {"bb", "22"}}};
  EXPECT_EQ(print(t, "> "), "> a    1\n> bb  22\n");
}

TEST(Table, TakesShortRowsAndNoRows) {
  Table t = sample();
  t.rows = {{"stage 0"}};
  EXPECT_EQ(print(t), "stage    peak  fits\n          GiB\nstage 0\n");
  t.rows.clear();
  EXPECT_EQ(print(t), "stage  peak  fits\n        GiB\n");
}

TEST(Table, CountsSymbolsAsOneColumn) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("12Ψ/N"), 5U);
  EXPECT_EQ(width_of("█·×≤"), 4U);
  const Table t{.columns = {{"a", "", Align::left}, {"b"}}, .rows = {{"6Ψ", "1"}, {"six", "2"}}};
  EXPECT_EQ(print(t), "a    b\n6Ψ   1\nsix  2\n");
}

TEST(Table, ColoursTakeNoColumns) { EXPECT_EQ(width_of("\x1b[31mred\x1b[0m"), 3U); }

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    most = std::max(most, width_of(text.substr(start, end - start)));
    start = end + 1;
  }
  return most;
}

TEST(Table, WrapsTextWhereTheTerminalIsNarrow) {
  const Table t{.columns = {{"row", "", Align::left}, {"error", "%"}, {"why", "", Align::left}},
                .rows = {{"a", "1.5", "the pipeline is deeper than the model has layers"}, {"b", "22.5", "-"}}};
  EXPECT_EQ(print(t, "  ", 40),
            "  row  error  why\n"
            "           %\n"
            "  a      1.5  the pipeline is deeper\n"
            "              than the model has layers\n"
            "  b     22.5  -\n");
  EXPECT_EQ(print(t, "  ", 200), print(t, "  "));
}

// Columns of figures that have no room stand below, and no cell is lost.
TEST(Table, SetsColumnsBelowWhereTheTerminalIsNarrow) {
  Table t;
  t.columns.push_back({"stage", "", Align::left});
  t.rows.resize(2);
  for (std::size_t r = 0; r < 2; ++r) t.rows[r].push_back("stage " + std::to_string(r));
  for (std::size_t c = 0; c < 12; ++c) {
    t.columns.push_back({"figure" + std::to_string(c), "GiB"});
    for (std::size_t r = 0; r < 2; ++r) t.rows[r].push_back(std::to_string(1000 * (r + 1) + c) + ".25");
  }
  for (const std::size_t columns : {40U, 60U, 80U, 100U}) {
    const std::string text = print(t, "  ", columns);
    EXPECT_LE(widest(text), columns);
    for (const auto& row : t.rows) {
      for (const std::string& cell : row) EXPECT_NE(text.find(cell), std::string::npos) << cell;
    }
  }
}

TEST(Table, BarsAreRoundedAndBounded) {
  EXPECT_EQ(width_of(bar(0, 40)), 0U);
  EXPECT_EQ(width_of(bar(0.5, 40)), 20U);
  EXPECT_EQ(width_of(bar(0.99, 40)), 40U);
  EXPECT_EQ(width_of(bar(3, 40)), 40U);
  EXPECT_EQ(width_of(bar(-1, 40)), 0U);
}

}  // namespace
}  // namespace orrery
