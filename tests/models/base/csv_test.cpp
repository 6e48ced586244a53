#include "models/base/csv.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

using Texts = std::vector<std::vector<std::string>>;

// The texts of two columns, "a" and "b", of every line of a table.
Texts texts_of(const std::string& table) {
  Texts texts;
  read_csv("t.csv", table, {{}, [&](const CsvRow& row) { texts.push_back({row.text("a"), row.text("b")}); }});
  return texts;
}

template <class F>
std::string error_of(const std::string& table, const F& reader) {
  try {
    read_csv("t.csv", table, {{}, reader});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, CellsAreFoundByName) {
  EXPECT_EQ(texts_of("b,x,a\r\n1, 2 ,3\n\n \n4,5, 6 \r\n"), (Texts{{"3", "1"}, {"6", "4"}}));
  EXPECT_EQ(texts_of("b\ta\n1,5\t3\n"), (Texts{{"3", "1,5"}}));
  EXPECT_EQ(texts_of("a,b\n,\n"), (Texts{{"", ""}}));
  EXPECT_TRUE(texts_of("").empty());
}

TEST(Csv, QuotedCellsHoldSeparatorsAndQuotes) {
  EXPECT_EQ(texts_of("\"a\",b\n\"gemm<128,64>\",\" say \"\"hi\"\" \"\n"), (Texts{{"gemm<128,64>", " say \"hi\" "}}));
  EXPECT_EQ(texts_of("a,b\n\"\" ,5\" pipe\n"), (Texts{{"", "5\" pipe"}}));
}

TEST(Csv, AByteOrderMarkIsNoPartOfTheFirstName) {
  EXPECT_EQ(texts_of("\xef\xbb\xbf"
                     "a,b\n1,2\n"),
            (Texts{{"1", "2"}}));
}

TEST(Csv, NumbersAreInTheirRange) {
  std::vector<double> numbers;
  std::vector<std::int64_t> wholes;
  read_csv("t.csv", "n,w\n-1.5,7\n2e3,3.0\n0,9007199254740993\n",
           {{}, [&](const CsvRow& row) {
              numbers.push_back(row.number("n", -2, 2000));
              wholes.push_back(row.whole("w", 0, std::int64_t{1} << 60));
            }});
  EXPECT_EQ(numbers, (std::vector<double>{-1.5, 2000, 0}));
  EXPECT_EQ(wholes, (std::vector<std::int64_t>{7, 3, 9007199254740993}));
}

TEST(Csv, ErrorsSayWhereAndWhat) {
  const auto number = [](const CsvRow& row) { row.number("n", 0, 10); };
  const auto whole = [](const CsvRow& row) { row.whole("n", 0, 10); };
  EXPECT_EQ(error_of("n,m,n\n", number), "t.csv:1: has two columns 'n'; leave out one of them");
  EXPECT_EQ(error_of("n,m\n1\n", number), "t.csv:2: has 1 cells under 2 columns");
  EXPECT_EQ(error_of("m\n1\n", number), "t.csv:2: has no column n");
  EXPECT_EQ(error_of("n\n1\n\nx\n", number), "t.csv:4: n: 'x' is no number");
  EXPECT_EQ(error_of("n\nnan\n", number), "t.csv:2: n: 'nan' is no number");
  EXPECT_EQ(error_of("n\n11\n", number), "t.csv:2: n: 11 is not between 0 and 10");
  EXPECT_EQ(error_of("n\n1.5\n", whole), "t.csv:2: n: '1.5' is no whole number");
  EXPECT_EQ(error_of("n\n-1\n", whole), "t.csv:2: n: -1 is not between 0 and 10");
  EXPECT_EQ(error_of("n\n1e300\n", whole), "t.csv:2: n: '1e300' is no whole number");
  EXPECT_EQ(error_of("n\n\"1\n", number), "t.csv:2: the cell \"1 has no closing quote on its line");
  EXPECT_EQ(error_of("n\n\"1\"2\n", number), "t.csv:2: 2 follows the closing quote of a cell");
  EXPECT_EQ(error_of("n\n\xff\n", number), "t.csv:2: cell 1 is no printable text in UTF-8");
  EXPECT_EQ(error_of("n\na\tb\n", number), "t.csv:2: cell 1 is no printable text in UTF-8");
}

}  // namespace
}  // namespace orrery
