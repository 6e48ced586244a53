#include "viz/timeline/align.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(Align, CollectivesTellTheClocks) {
  constexpr Picoseconds us = 1'000'000, off = 777 * us;
  TimelineBuilder b;
  std::vector<std::size_t> firsts;
  for (int file = 0; file < 2; ++file) {
    firsts.push_back(b.events());
    const auto thread = b.add_thread(b.add_process({}), "nccl", 0);
    const auto label = b.label("all_reduce", Kind::data);
    for (int i = 0; i < 9; ++i) {
      const Picoseconds end = (100 * i + 50) * us + file * (off + i % 3 * 1000);
      b.add({end - 10 * us, end, thread, label, 0});
    }
  }
  align_clocks(b, firsts);
  ASSERT_EQ(b.timeline().remarks.size(), 1u);
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(static_cast<double>(b.event(i).end), static_cast<double>(b.event(9 + i).end), 2000);
}

TEST(Align, LeavesAloneWhatHasNothingInCommon) {
  TimelineBuilder b;
  const auto thread = b.add_thread(b.add_process({}), "", 0);
  b.add({0, 5, thread, b.label("a", Kind::data), 0});
  b.add({10, 15, thread, b.label("b", Kind::data), 0});
  align_clocks(b, {0, 1});
  EXPECT_EQ(b.event(1).begin, 10);
  EXPECT_TRUE(b.timeline().remarks.empty());
}
