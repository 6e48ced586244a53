#include "viz/read/event_scan.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

using namespace orrery;

namespace {

struct Found {
  std::string names;
  std::uint64_t skipped = 0;
  bool closed = false;
  std::size_t position = 0;
};

Found found(const std::string& text, bool ahead) {
  JsonScan scan(text);
  EventScan events(scan, text);
  Found f;
  const auto take = [&](const RawEvent& raw) { f.names += std::string(raw.name) + ' '; };
  ahead ? take_events_ahead(events, take) : take_events(events, take);
  f.skipped = events.skipped();
  f.closed = events.closed();
  f.position = scan.position();
  return f;
}

}  // namespace

TEST(EventScan, LeavesOutWhatIsNoEvent) {
  for (const bool ahead : {false, true}) {
    const Found f = found(R"([{"name":"a"}, 7, {"name":"b"} {"name":"c",,} ,{"name":"d"}], "rest")", ahead);
    EXPECT_EQ(f.names, "a b d ");
    EXPECT_EQ(f.skipped, 2u);
    EXPECT_TRUE(f.closed);
    EXPECT_EQ(f.position, 60u);  // behind the bracket
  }
}

TEST(EventScan, SaysThatAListIsNotClosed) {
  for (const std::string text : {"[", R"([{"name":"a"})", R"([{"name":"a"},{"na)"}) {
    EXPECT_FALSE(found(text, false).closed) << text;
    EXPECT_FALSE(found(text, true).closed) << text;
  }
}

TEST(EventScan, ReadingAheadGivesTheSameEventsInOrder) {
  std::string text = "[";
  for (int i = 0; i < 5000; ++i) text += "{\"name\":\"" + std::to_string(i) + (i % 700 == 9 ? "\",," : "\"},");
  const Found one = found(text + "]", false), two = found(text + "]", true);
  EXPECT_EQ(one.names, two.names);
  EXPECT_EQ(one.skipped, two.skipped);
  EXPECT_GT(one.skipped, 0u);
}

TEST(EventScan, WhatTheTakerThrowsStopsTheReader) {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) text += "{\"name\":\"x\"},";
  JsonScan scan(text);
  EventScan events(scan, text);
  int taken = 0;
  const auto take = [&](const RawEvent&) {
    if (++taken == 1000) throw std::runtime_error("enough");
  };
  EXPECT_THROW(take_events_ahead(events, take), std::runtime_error);
  EXPECT_EQ(taken, 1000);
}
