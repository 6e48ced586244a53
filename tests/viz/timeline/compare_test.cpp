#include "viz/timeline/compare.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

TEST(Compare, MatchesTheSameTimelineWithItself) {
  const Timeline t = two_lanes();
  const Matching m = match(t, t);
  EXPECT_EQ(m.matched, 5u);
  for (EventId e = 0; e < t.events(); ++e) {
    EXPECT_EQ(m.there[e], e);
    EXPECT_EQ(relative_change(t, t, m, e), 0);
  }
}

TEST(Compare, MatchesByIdentityNotByPlace) {
  const Timeline a = two_lanes();
  TimelineBuilder b;
  Process p;
  p.rank = 0;
  b.add_process(p);
  const auto lane = b.add_thread(0, "compute", 0);
  b.add({5, 25, lane, b.label("new", Kind::forward), 0}, {0, 3, 0});
  b.add({30, 90, lane, b.label("qkv", Kind::forward), 0}, {1, 3, 0});
  const Timeline other = b.finish();
  const Matching m = match(a, other);
  EXPECT_EQ(m.matched, 1u);
  EXPECT_EQ(m.there[0], kNoEvent);
  EXPECT_EQ(m.there[1], 1u);
  EXPECT_EQ(m.back[1], 1u);
  EXPECT_EQ(m.back[0], kNoEvent);
}

TEST(Compare, RanksDifferences) {
  const Timeline a = two_lanes();
  Timeline b = two_lanes();
  std::vector<Picoseconds> begins, ends;  // everything takes twice as long
  for (EventId e = 0; e < b.events(); ++e) {
    begins.push_back(b.begins[e] * 2);
    ends.push_back(b.ends[e] * 2);
  }
  b.begins = begins;
  b.ends = ends;
  b.end *= 2;
  const auto rows = differences(a, b);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].more(), 20'000'000);
  const Matching m = match(a, b);
  EXPECT_NEAR(relative_change(a, b, m, 0), -0.5, 1e-12);
  EXPECT_NEAR(relative_change(b, a, match(b, a), 0), 1, 1e-12);
}
