#include "sim/summary/event_parts.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/random_bits.h"
#include "tests/sim/summary/read_by_parts.h"

namespace orrery {
namespace {

using parts::NotingPart;
using parts::read_by_parts;
using parts::Seen;

// Events whose strings and arguments look like the beginnings of events, in all lengths and with all blanks.
TEST(EventParts, EveryEventIsReadOnceWhereverTheTextIsCut) {
  static constexpr const char* kTails[] = {"", R"(, "args": {"a": [{"name": "x"}, {"name": "y"},{"name": "z"}]})",
                                           R"(, "args": {"s": "},{ \"name\": 1 }, {"})", R"(, "args": {"s": "},{"})",
                                           R"(, "args": {"External id": 4, "correlation": 5, "s": [[{}, {}]]})"};
  static constexpr const char* kBetween[] = {",", ", ", ",\n  ", "\n,\n"};
  std::uint64_t counter = 0;
  std::size_t rounds_by_parts = 0;
  const auto random = [&] { return test::random_bits(++counter); };
  for (int round = 0; round < 300; ++round) {
    std::string text;
    Seen expected;
    const std::size_t events = 1 + random() % 40;
    for (std::size_t i = 0; i < events; ++i) {
      expected.push_back(fmt::format("event {}", i));
      text +=
          fmt::format("{}{{\"name\": \"event {}\"{}}}", i == 0 ? "" : kBetween[random() % 4], i, kTails[random() % 5]);
    }
    const std::string list = text + (round % 2 == 0 ? "]}" : ", {\"na");
    std::size_t by_parts = 0;
    for (const std::size_t least : {std::size_t{200}, std::size_t{20}, std::size_t{1}})
      ASSERT_EQ(read_by_parts(list, 1 + random() % 4, least, &by_parts), expected) << text;
    rounds_by_parts += by_parts > 0;
  }
  EXPECT_GT(rounds_by_parts, 150U);  // three of four rounds have several threads
}

TEST(EventParts, WhatFollowsTheEventsIsLeft) {
  Seen seen;
  EventParts parts([&] { return std::make_unique<NotingPart>(seen); }, {2, 4});
  EXPECT_EQ(parts.read(R"({"name":"a"},{"name":"b"},,{"name":"c"}])"), 25U);  // two commas are refused elsewhere
  EXPECT_EQ(seen, (Seen{"a", "b"}));
  EXPECT_EQ(parts.read(R"(])"), 0U);
  EXPECT_EQ(parts.read(R"(17, {"name":"c"}])"), 0U);
  EXPECT_EQ(parts.read(R"({"name":"c"}, {"name":"d"}, {"name":"e)"), 28U);
  EXPECT_EQ(seen, (Seen{"a", "b", "c", "d"}));
}

// Behind a part that cannot be passed on, or whose reader throws, all events are read one by one.
TEST(EventParts, WhatNoPartCanTakeIsLeftToTheCaller) {
  for (const char* name : {"alone", "damaged"}) {
    Seen seen;
    EventParts parts([&] { return std::make_unique<NotingPart>(seen); }, {2, 8});
    std::string text = R"({"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"})";
    text += fmt::format(R"(,{{"name":"{}"}},{{"name":"e"}},{{"name":"f"}},{{"name":"g"}})", name);
    const std::size_t end = parts.read(text);
    EXPECT_GT(end, 0U);
    EXPECT_FALSE(seen.empty());
    EXPECT_LE(end, text.find(name));
    for (const std::string& event : seen) EXPECT_LT(event, "e");
    EXPECT_EQ(parts.read(text.substr(end)), 0U);
  }
}

TEST(EventParts, AShortTextAndALoneThreadReadNothing) {
  Seen seen;
  const auto make = [&] { return std::make_unique<NotingPart>(seen); };
  const std::string text = R"({"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"})";
  EXPECT_EQ(EventParts(make, {1, 4}).read(text), 0U);
  EXPECT_EQ(EventParts(make, {4, 64}).read(text), 0U);
  EXPECT_TRUE(seen.empty());
}

}  // namespace
}  // namespace orrery
