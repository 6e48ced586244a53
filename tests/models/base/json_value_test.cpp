#include "models/base/json_value.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

template <class Read>
std::string refusal_of(const std::string& text, const Read& read) {
  try {
    const nlohmann::json file = parse_json("f.json", text, "write it again");
    read(JsonValue(file, "f.json", "see the manual"));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(JsonValue, ReadsWhatIsThere) {
  const nlohmann::json file =
      parse_json("f.json", R"({"a": {"b": [1, 2.5]}, "t": "x", "f": true, "n": null, "w": -3})");
  const JsonValue root(file, "f.json");
  EXPECT_EQ(root.at("a").at("b").numbers(0, 9), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(root.at("a").at("b").items()[1].key(), "a.b[1]");
  EXPECT_EQ(root.text_or("t", "y"), "x");
  EXPECT_EQ(root.text_or("n", "y"), "y");
  EXPECT_TRUE(root.flag_or("f", false));
  EXPECT_EQ(root.whole_or("w", 0, -5, 5), -3);
  EXPECT_EQ(root.number_or("none", 7, 0, 1), 7);
  const nlohmann::json extremes = parse_json("f.json", "[9223372036854775807, -9223372036854775808, 9e18]");
  const auto items = JsonValue(extremes, "f.json").items();
  EXPECT_EQ(items[0].whole(0, INT64_MAX), INT64_MAX);
  EXPECT_EQ(items[1].whole(INT64_MIN, 0), INT64_MIN);
  EXPECT_THROW(items[2].whole(0, INT64_MAX), Error);
  EXPECT_EQ(root.members().size(), 4U);
  EXPECT_FALSE(root.find("n"));
}

TEST(JsonValue, EveryRefusalNamesFileAndKeyInOneLine) {
  const auto read = [](auto use) { return [use](const JsonValue& v) { use(v.at("a").items().at(1).at("k")); }; };
  const auto of = [&](const char* value, auto use) {
    return refusal_of(std::string(R"({"a": [{}, {"k": )") + value + "}]}", read(use));
  };
  const auto number = [](const JsonValue& v) { v.number(1, 5); };
  const auto whole = [](const JsonValue& v) { v.whole(1, 5); };
  EXPECT_EQ(of("6", number), "f.json: a[1].k: 6 is not between 1 and 5; see the manual");
  EXPECT_EQ(of("\"x\\ny\"", number), "f.json: a[1].k: \"x\\ny\" is not a number; see the manual");
  EXPECT_EQ(of("2.5", whole), "f.json: a[1].k: 2.5 is not a whole number; see the manual");
  EXPECT_EQ(of("1e300", whole), "f.json: a[1].k: 1e+300 is not between 1 and 5; see the manual");
  EXPECT_EQ(of("18446744073709551615", whole),
            "f.json: a[1].k: 18446744073709551615 is not between 1 and 5; see the manual");
  EXPECT_EQ(of("0", [](const JsonValue& v) { v.positive(5); }), "f.json: a[1].k: 0 is not above 0; see the manual");
  EXPECT_EQ(of("[]", [](const JsonValue& v) { v.text(); }),
            "f.json: a[1].k: a list stands where a text is needed; see the manual");
  EXPECT_EQ(of("1", [](const JsonValue& v) { v.flag(); }), "f.json: a[1].k: 1 is not true or false; see the manual");
  EXPECT_EQ(of("{}", [](const JsonValue& v) { v.items(); }),
            "f.json: a[1].k: an object stands where a list [...] is needed; see the manual");
  EXPECT_EQ(of("3", [](const JsonValue& v) { v.find("x"); }),
            "f.json: a[1].k: 3 stands where an object {...} is needed; see the manual");
  EXPECT_EQ(of("null", number), "f.json: a[1].k: is missing; see the manual");
  const std::string longest = of(("\"" + std::string(5000, 'x') + "\"").c_str(), number);
  EXPECT_LT(longest.size(), 200U);
}

TEST(JsonValue, WhatIsNoJsonIsNamedByItsLine) {
  const auto nothing = [](const JsonValue&) {};
  EXPECT_EQ(refusal_of("{\n\"a\": 1,\n", nothing), "f.json:3: is no JSON: it ends too soon; give the whole file");
  EXPECT_EQ(refusal_of("{\n\"a\": what}", nothing), "f.json:2: is no JSON: write it again");
  EXPECT_EQ(refusal_of("[1e999]", nothing), "f.json: is no JSON: a number in it is too large; write it again");
  EXPECT_EQ(refusal_of(std::string(3'000'000, '['), nothing),
            "f.json:1: nested deeper than 256 levels; write it again");
  EXPECT_EQ(refusal_of("[\"" + std::string(1000, '[') + "\"]", nothing), "");
}

}  // namespace
}  // namespace orrery
