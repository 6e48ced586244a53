#include "viz/timeline/timeline_builder.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

TEST(TimelineBuilder, GroupsByLaneAndSortsByTime) {
  const Timeline t = two_lanes();
  ASSERT_EQ(t.tracks.size(), 2u);
  EXPECT_EQ(t.tracks[0].name, "compute");
  EXPECT_EQ(t.tracks[0].count, 3u);
  EXPECT_EQ(t.name(2), "qkv gradient");
  EXPECT_EQ(t.place(1).micro_batch, 1);
  EXPECT_EQ(t.end, 60'000'000);
  EXPECT_EQ(track_of(t, 2), 0u);
  EXPECT_EQ(track_of(t, 3), 1u);
}

TEST(TimelineBuilder, PutsNestedEventsOnRowsBelow) {
  TimelineBuilder b;
  b.add_process({});
  const auto thread = b.add_thread(0, "cpu", 0);
  const auto label = b.label("f", Kind::host);
  constexpr Picoseconds us = 1'000'000;
  b.add({2 * us, 3 * us, thread, label, 0});
  b.add({0, 10 * us, thread, label, 0});
  b.add({1 * us, 9 * us, thread, label, 0});
  b.add({10 * us, 12 * us, thread, label, 0});
  const Timeline t = b.finish();
  ASSERT_EQ(t.tracks.size(), 3u);
  EXPECT_EQ(t.tracks[0].count, 2u);
  EXPECT_EQ(t.tracks[1].level, 1u);
  EXPECT_EQ(t.begins[t.tracks[2].first], 2 * us);
}

TEST(TimelineBuilder, NoRowOverlapsWhateverComes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TimelineBuilder b;
    b.add_process({});
    const auto thread = b.add_thread(0, "", 0);
    const auto label = b.label("f", Kind::other);
    std::uint64_t x = seed * 2654435761U + 1;
    for (int i = 0; i < 200; ++i) {
      x = x * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto begin = static_cast<Picoseconds>(x >> 40);
      b.add({begin, begin + static_cast<Picoseconds>((x >> 20) % 300'000), thread, label, 0});
    }
    const Timeline t = b.finish();
    EXPECT_EQ(t.events(), 200u);
    for (const Track& track : t.tracks) {
      if (track.level + 1 >= 32) continue;
      for (EventId e = track.first + 1; e < track.first + track.count; ++e) EXPECT_LE(t.ends[e - 1], t.begins[e]);
    }
  }
}

TEST(TimelineBuilder, FindsTheEventOfATime) {
  const Timeline t = two_lanes();
  EXPECT_EQ(event_at(t, 0, 5'000'000), 0u);
  EXPECT_EQ(event_at(t, 0, 10'000'000), 1u);
  EXPECT_EQ(event_at(t, 0, 25'000'000), kNoEvent);
  EXPECT_EQ(event_at(t, 0, 99'000'000), kNoEvent);
}

// Lanes whose events come in order, out of order, and nested, mixed: each row holds its own events, by time, with the
// data of each event still beside it.
TEST(TimelineBuilder, LanesThatCameInAnyOrderKeepTheirEvents) {
  TimelineBuilder b;
  b.add_process({});
  const std::uint32_t lanes[] = {b.add_thread(0, "late", 2), b.add_thread(0, "mixed", 0), b.add_thread(0, "nested", 1)};
  const auto label = b.label("f", Kind::other);
  constexpr Picoseconds us = 1'000'000;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Picoseconds at = static_cast<Picoseconds>(i) * us, swapped = static_cast<Picoseconds>(i ^ 1) * us;
    b.add({at, at + us, lanes[0], label, i}, {static_cast<std::int32_t>(i), -1, 0});
    b.add({swapped, swapped + us, lanes[1], label, i ^ 1}, {static_cast<std::int32_t>(i ^ 1), -1, 0});
    b.add({i % 2 == 0 ? at : at + us / 2 - us, i % 2 == 0 ? at + us : at, lanes[2], label, i});
  }
  const Timeline t = b.finish();
  ASSERT_EQ(t.tracks.size(), 4u);
  EXPECT_EQ(t.tracks[0].name, "mixed");
  EXPECT_EQ(t.tracks[3].name, "late");
  EXPECT_EQ(t.tracks[1].count, 150u);
  EXPECT_EQ(t.tracks[2].level, 1u);
  for (const std::uint32_t track : {0U, 3U}) {
    ASSERT_EQ(t.tracks[track].count, 300u);
    for (EventId i = 0; i < 300; ++i) {
      const EventId e = t.tracks[track].first + i;
      EXPECT_EQ(t.begins[e], Picoseconds{i} * us);
      EXPECT_EQ(t.detail[e], i);
      EXPECT_EQ(t.place(e).micro_batch, static_cast<std::int32_t>(i));
    }
  }
  for (EventId i = 0; i < 150; ++i) EXPECT_EQ(t.detail[t.tracks[2].first + i], 2 * i + 1);
}

TEST(TimelineBuilder, CountersMoveWithTheEventsOfOtherProcesses) {
  TimelineBuilder b;
  b.add_process({});
  Process counted;
  counted.counters.push_back({"memory", {"a"}, {70, 90}, {1, 2}});
  b.add_process(counted);
  b.add({50, 100, b.add_thread(0, "", 0), b.label("f", Kind::other), 0});
  EXPECT_EQ(b.finish().processes[1].counters[0].times, (std::vector<Picoseconds>{20, 40}));
}
