#include "viz/timeline/timeline.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

constexpr Picoseconds kMicro = 1'000'000;

// A source that gives the match of every event: the key itself.
class ByKey : public DetailSource {
 public:
  Details details(std::uint64_t key) const override { return {{"match", std::to_string(key)}}; }
};

}  // namespace

TEST(Timeline, FindsWhatRunsAtATime) {
  const Timeline t = two_lanes();
  EXPECT_EQ(event_at(t, 0, 5 * kMicro), 0u);
  EXPECT_EQ(event_at(t, 0, 25 * kMicro), kNoEvent);  // between two
  EXPECT_EQ(event_at(t, 0, 99 * kMicro), kNoEvent);
  EXPECT_EQ(first_after(t, t.tracks[0], 25 * kMicro), 2u);
  EXPECT_EQ(first_after(t, t.tracks[0], 99 * kMicro), 3u);  // the track's end
  for (EventId e = 0; e < t.events(); ++e) EXPECT_EQ(track_of(t, e), e < 3 ? 0u : 1u);
}

TEST(Timeline, MembersOfACollectiveAreThoseOfItsMatch) {
  TimelineBuilder b;
  const auto label = b.label("all_reduce", Kind::data);
  b.add_source(std::make_shared<ByKey>());
  for (std::uint32_t p = 0; p < 3; ++p) {
    b.add_process({});
    b.add_thread(p, "data", 0);
    b.add({p * kMicro, 10 * kMicro, p, label, p == 2 ? 8U : 7U});  // the third event belongs to another match
  }
  const Timeline t = b.finish(0);
  EXPECT_EQ(members_of(t, 0), (std::vector<EventId>{0, 1}));
  EXPECT_EQ(members_of(t, 2), (std::vector<EventId>{2}));
}

// PyTorch gives the groups of one kind the same name on all ranks, so groups are distinguished by their lists of ranks.
TEST(Timeline, MembersOfAGroupAreToldByTheirRanks) {
  class ByRank : public DetailSource {
   public:
    Details details(std::uint64_t rank) const override {
      return {{"Process Group Name", "3"}, {"Process Group Ranks", rank < 2 ? "[0, 1]" : "[2, 3]"}};
    }
  };
  TimelineBuilder b;
  const auto label = b.label("ncclDevKernel_AllReduce", Kind::data);
  b.add_source(std::make_shared<ByRank>());
  for (std::uint32_t p = 0; p < 4; ++p) {
    b.add_process({});
    b.add_thread(p, "stream 20", 0);
    b.add({p * kMicro, 10 * kMicro, p, label, p});
  }
  const Timeline t = b.finish(0);
  EXPECT_EQ(members_of(t, 1), (std::vector<EventId>{0, 1}));
  EXPECT_EQ(members_of(t, 2), (std::vector<EventId>{2, 3}));
}

TEST(Timeline, WhatComputesHasNoMembersAndDetailsAreFoundByName) {
  EXPECT_TRUE(members_of(two_lanes(), 0).empty());
  EXPECT_EQ(detail_named({{"a", "1"}, {"b", "2"}}, "b"), "2");
  EXPECT_EQ(detail_named({}, "b"), "");
  EXPECT_EQ(name_of(Kind::other), "other");
}
