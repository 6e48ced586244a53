#include "viz/timeline/find.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

TEST(Search, FindsByNameWhateverTheCase) {
  const Timeline t = two_lanes();
  const Search s = search(t, "QKV");
  EXPECT_EQ(s.hits, (std::vector<EventId>{0, 1, 2}));
  EXPECT_EQ(search(t, "tensor").hits.size(), 2u);
  EXPECT_TRUE(search(t, "").hits.empty());
  EXPECT_TRUE(search(t, "nowhere").hits.empty());
}

TEST(Search, GoesRoundBothWays) {
  const Timeline t = two_lanes();
  const Search s = search(t, "qkv");
  EXPECT_EQ(next_hit(s, t, kNoEvent, true), 0u);
  EXPECT_EQ(next_hit(s, t, 0, true), 1u);
  EXPECT_EQ(next_hit(s, t, 2, true), 0u);
  EXPECT_EQ(next_hit(s, t, 0, false), 2u);
  EXPECT_EQ(next_hit(s, t, 3, true), 2u);  // from an event that is no hit: 15 us
  EXPECT_EQ(next_hit(search(t, "x"), t, 0, true), kNoEvent);
}
