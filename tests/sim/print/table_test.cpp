#include "sim/print/table.h"

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

TEST(Table, BarsAreRoundedAndBounded) {
  EXPECT_EQ(width_of(bar(0, 40)), 0U);
  EXPECT_EQ(width_of(bar(0.5, 40)), 20U);
  EXPECT_EQ(width_of(bar(0.99, 40)), 40U);
  EXPECT_EQ(width_of(bar(3, 40)), 40U);
  EXPECT_EQ(width_of(bar(-1, 40)), 0U);
}

}  // namespace
}  // namespace orrery
