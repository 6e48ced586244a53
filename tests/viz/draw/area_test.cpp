#include "viz/draw/area.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

namespace {
constexpr Picoseconds us = 1'000'000;
std::size_t index_of(Kind k) { return static_cast<std::size_t>(k); }
}  // namespace

TEST(Area, TellsComputeExposedHiddenAndIdle) {
  const Timeline t = two_lanes();
  const AreaIndex index(t);
  const AreaSums all = index.sums(t, 0, 0, t.end);
  EXPECT_EQ(all.compute, 40 * us);
  EXPECT_EQ(all.busy[index_of(Kind::forward)], 20 * us);
  EXPECT_EQ(all.busy[index_of(Kind::tensor)], 20 * us);
  EXPECT_EQ(all.exposed[index_of(Kind::tensor)], 15 * us);
  EXPECT_EQ(all.idle, 5 * us);
  const AreaSums part = index.sums(t, 0, 12 * us, 22 * us);
  EXPECT_EQ(part.compute, 8 * us);
  EXPECT_EQ(part.exposed[index_of(Kind::tensor)], 2 * us);
  EXPECT_EQ(part.idle, 0);
}

TEST(Area, WindowsAddUp) {
  TimelineBuilder b;
  b.add_process({});
  const std::uint32_t threads[] = {b.add_thread(0, "", 0), b.add_thread(0, "", 1), b.add_thread(0, "", 2)};
  const std::uint32_t labels[] = {b.label("a", Kind::forward), b.label("b", Kind::data), b.label("c", Kind::pipeline)};
  std::uint64_t x = 7;
  Picoseconds clock[3] = {};
  for (int i = 0; i < 6000; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    Picoseconds& at = clock[i % 3];
    at += static_cast<Picoseconds>((x >> 33) % 900);
    const auto length = static_cast<Picoseconds>((x >> 45) % 1000);
    b.add({at, at + length, threads[i % 3], labels[i % 3], 0});
    at += length;
  }
  const Timeline t = b.finish(0);
  const AreaIndex index(t);
  const AreaSums whole = index.sums(t, 0, 0, t.end);
  Picoseconds compute = 0, idle = 0, exposed = 0;
  for (int i = 0; i < 37; ++i) {
    const AreaSums part = index.sums(t, 0, t.end * i / 37, t.end * (i + 1) / 37);
    compute += part.compute;
    idle += part.idle;
    exposed += part.exposed[index_of(Kind::data)];
  }
  EXPECT_EQ(compute, whole.compute);
  EXPECT_EQ(idle, whole.idle);
  EXPECT_EQ(exposed, whole.exposed[index_of(Kind::data)]);
  EXPECT_EQ(index.sums(t, 0, 50, 50).compute, 0);
}

TEST(Area, PeakCountsWhatIsHeldWhenTheWindowBegins) {
  const Timeline t = two_lanes();
  const Counter& memory = *memory_of(t.processes[0]);
  EXPECT_EQ(memory_peak(memory, 0, t.end).bytes, 10);
  EXPECT_EQ(memory_peak(memory, 0, t.end).time, 20 * us);
  EXPECT_EQ(memory_peak(memory, 30 * us, 35 * us).bytes, 10);
  EXPECT_EQ(memory_peak(memory, 45 * us, t.end).bytes, 6);
  EXPECT_EQ(first_above(memory, 10), -1);
  EXPECT_EQ(first_above(memory, 9), 20 * us);
  EXPECT_EQ(first_above(memory, 3), 0);
  EXPECT_EQ(sample_at(memory, 19 * us), 0);
  const AreaIndex index(t);
  const auto rows = area_statistics(t, index, 0, 15 * us);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].memory.bytes, 4);
}
