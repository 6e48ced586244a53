#include "models/trace/json_scan.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(JsonScan, ReadsTimesExactly) {
  struct Row {
    const char* text;
    bool good;
    std::int64_t us, ps;
  };
  for (const Row& r : {Row{"12.5", true, 12, 500'000},
                       {"0", true, 0, 0},
                       {"-0.25", true, -1, 750'000},
                       {"1700000000000000.123456789", true, 1'700'000'000'000'000, 123'456},
                       {"1e3", true, 1000, 0},
                       {"2.5e-1", true, 0, 250'000},
                       {"NaN", false, 0, 0},
                       {"Infinity", false, 0, 0},
                       {"", false, 0, 0},
                       {"-", false, 0, 0},
                       {"1e300", false, 0, 0},
                       {"12x", false, 0, 0},
                       {"99999999999999999999", false, 0, 0},
                       {"null", false, 0, 0}}) {
    ExactTime t;
    EXPECT_EQ(parse_time(r.text, t), r.good) << r.text;
    if (!r.good) continue;
    EXPECT_EQ(t.microseconds, r.us) << r.text;
    EXPECT_EQ(t.picoseconds, r.ps) << r.text;
  }
}

TEST(JsonScan, StringsEndAtTheirOwnQuote) {
  for (const std::string inside :
       {"", "a", "seven c", "eight ch", "nine char", "with \\\" quote and \\\\", "long, {with} [all]: \\u0041"}) {
    const std::string text = "\"" + inside + "\",";
    JsonScan scan(text);
    EXPECT_EQ(scan.peek(), '"');
    EXPECT_EQ(scan.string(), inside);
    EXPECT_TRUE(scan.take(','));
  }
}

TEST(JsonScan, CountsControlCharactersAndSeesTruncation) {
  JsonScan scan("\"a\x01\nb\" \"cut");
  scan.peek();
  scan.string();
  EXPECT_EQ(scan.control_characters(), 2u);
  EXPECT_TRUE(scan.complete());
  scan.peek();
  scan.string();
  EXPECT_FALSE(scan.complete());
  EXPECT_TRUE(scan.done());
}

TEST(JsonScan, SkipsNestedValues) {
  JsonScan scan(R"({"a": [1, {"b": "}]"}], "c": 2} 7)");
  scan.skip();
  EXPECT_EQ(scan.raw(), "7");
}

TEST(JsonScan, UnescapesToValidText) {
  EXPECT_EQ(unescaped("a\\nb\\u0041\\\"\\\\"), "a bA\"\\");
  EXPECT_EQ(unescaped("\\u00e9\\u4e2d"), "\xc3\xa9\xe4\xb8\xad");
  EXPECT_EQ(unescaped("\x02"), " ");
  EXPECT_EQ(unescaped("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(unescaped("\\ud83d"), "\xef\xbf\xbd");
  EXPECT_EQ(unescaped("\\u12"), "\xef\xbf\xbd");
}

TEST(JsonScan, MembersIncludeTheArguments) {
  const auto members = members_of_object(R"({"name": "x", "args": {"bytes": 12, "args": {"args": {}}}, "ph": "X"})");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"name", "x"}, {"bytes", "12"}, {"args", "{\"args\": {}}"}, {"ph", "X"}};
  EXPECT_EQ(members, expected);
}

TEST(JsonScan, DeepNestingNeedsNoStack) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "{\"args\":";
  EXPECT_FALSE(members_of_object(text).size() > 1);
}

// The end of a number is looked for eight bytes at a time: at every length, end and distance from the text's end.
TEST(JsonScan, NumbersOfEveryLengthEndWhereTheyEnd) {
  for (std::size_t length = 1; length < 30; ++length) {
    const std::string number = std::string("-1234567890.0987654321e+1234567890").substr(0, length);
    for (const char end : {',', '}', ']', ' ', '\n', '\t', '\r'}) {
      for (std::size_t after = 0; after < 12; ++after) {
        const std::string text = number + end + std::string(after, '7');
        JsonScan scan(text);
        EXPECT_EQ(scan.raw(), number) << text;
        EXPECT_TRUE(scan.complete());
      }
    }
    JsonScan cut(number);
    EXPECT_EQ(cut.raw(), number);
    EXPECT_FALSE(cut.complete());
  }
  JsonScan odd("1\x01\x02,");
  EXPECT_EQ(odd.raw(), "1\x01\x02");
}

// A text that is no JSON, as the zeros of a file that became shorter, is passed over up to the next end of a value.
TEST(JsonScan, WordsOfControlCharactersEndWhereTheyEnd) {
  for (std::size_t length = 1; length <= 40; ++length) {
    std::string word;
    for (std::size_t i = 0; i < length; ++i) word += "\x01\x02\x0b\x1f\x08"[i % 6];  // the sixth is a zero
    for (const char end : {',', '}', ']', ' ', '\n', '\t', '\r'}) {
      for (std::size_t after = 0; after < 20; ++after) {
        const std::string text = word + end + std::string(after, ',');
        JsonScan scan(text);
        ASSERT_EQ(scan.raw(), word);
        ASSERT_TRUE(scan.complete());
      }
    }
    JsonScan cut(word);
    EXPECT_EQ(cut.raw(), word);
    EXPECT_FALSE(cut.complete());
  }
}

// Blanks behind a line's end are passed over sixteen at a time; every other byte ends them.
TEST(JsonScan, BlanksOfAnyNumberArePassedOver) {
  for (std::size_t blanks = 0; blanks < 40; ++blanks) {
    for (const char* end : {"1", "\x01", "\x0b", ""}) {
      std::string text = blanks % 2 == 0 ? "\n" : "\r\n";
      for (std::size_t i = 0; i < blanks; ++i) text += " \t\r\n"[i % 4];
      const std::string whole = text + end;
      JsonScan scan(whole);
      EXPECT_EQ(scan.peek(), *end);
      EXPECT_EQ(scan.position(), text.size());
    }
  }
}
