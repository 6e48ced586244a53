#include "viz/timeline/runs.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

TEST(Runs, OneForEveryMicroBatchAndDirection) {
  const Timeline t = made_pipeline();
  const auto runs = runs_of(t, t.tracks[0]);
  ASSERT_EQ(runs.size(), 16u);  // eight micro-batches forward and backward
  EXPECT_EQ(runs[0].micro_batch, 0);
  EXPECT_EQ(runs[0].kind, Kind::forward);
  for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_LE(runs[i - 1].end, runs[i].begin);
}

TEST(Runs, RecomputationBelongsToItsBackward) {
  const Timeline t = made_pipeline();
  for (const orrery::Run& r : runs_of(t, t.tracks[0])) EXPECT_NE(r.kind, Kind::recompute);
}

TEST(Runs, NoneWithoutMicroBatches) {
  TimelineBuilder b;
  b.add_process({});
  b.add_thread(0, "", 0);
  b.add({0, 10, 0, b.label("a", Kind::forward), 0});
  const Timeline t = b.finish(0);
  EXPECT_TRUE(runs_of(t, t.tracks[0]).empty());
}

TEST(Runs, ALongPauseEndsOneAShortDoesNot) {
  TimelineBuilder b;
  b.add_process({});
  const auto lane = b.add_thread(0, "", 0);
  const auto again = b.label("norm", Kind::recompute), back = b.label("norm gradient", Kind::backward);
  b.add({0, 10'000, lane, again, 0}, {3, 0, 0});
  b.add({30'000, 40'000, lane, back, 0}, {3, 0, 0});
  b.add({200'000, 260'000, lane, back, 0}, {3, 0, 0});
  const Timeline t = b.finish(0);
  const auto runs = runs_of(t, t.tracks[0]);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].end, 40'000);
  EXPECT_EQ(runs[1].begin, 200'000);
}
