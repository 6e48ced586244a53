#include "sim/summary/event_parts.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

using Seen = std::vector<std::string>;

// Notes names of events. Throws at an event named "damaged", and refuses to pass on one named "alone".
class NotingPart : public PartReader {
 public:
  explicit NotingPart(Seen& all) : all_(all) {}
  void event(const TraceEvent& e) override {
    if (e.name == "damaged") throw Error("is damaged");
    part_.emplace_back(e.name);
  }
  bool pass_on() override {
    for (const std::string& name : part_) {
      if (name == "alone") return false;
    }
    all_.insert(all_.end(), part_.begin(), part_.end());
    part_.clear();
    return true;
  }
  void drop() override { part_.clear(); }

 private:
  Seen& all_;
  Seen part_;
};

// Reads a list of events as a trace file is read: by parts, and one by one where parts go no further.
Seen read_by_parts(std::string_view text, std::size_t threads, std::size_t least) {
  Seen seen;
  EventParts parts([&] { return std::make_unique<NotingPart>(seen); }, {threads, least});
  while (!text.empty()) {
    text.remove_prefix(parts.read(text));
    JsonScan scan(text);
    scan.take(',');
    TraceEvent event;
    if (scan.peek() != '{' || !read_trace_event(scan, text, event)) break;
    seen.emplace_back(event.name);
    text.remove_prefix(scan.position());
  }
  return seen;
}

// Events whose strings and arguments look like the beginnings of events, in all lengths and with all blanks.
TEST(EventParts, EveryEventIsReadOnceWhereverTheTextIsCut) {
  static constexpr const char* kTails[] = {"", R"(, "args": {"a": [{"name": "x"}, {"name": "y"},{"name": "z"}]})",
                                           R"(, "args": {"s": "},{ \"name\": 1 }, {"})", R"(, "args": {"s": "},{"})",
                                           R"(, "args": {"External id": 4, "correlation": 5, "s": [[{}, {}]]})"};
  static constexpr const char* kBetween[] = {",", ", ", ",\n  ", "\n,\n"};
  std::uint64_t counter = 0;
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
    for (const std::size_t least : {std::size_t{1}, std::size_t{20}, std::size_t{200}})
      ASSERT_EQ(read_by_parts(text + (round % 2 == 0 ? "]}" : ", {\"na"), 1 + random() % 4, least), expected) << text;
  }
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
