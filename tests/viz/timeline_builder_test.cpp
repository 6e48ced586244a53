#include "viz/timeline_builder.h"

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
