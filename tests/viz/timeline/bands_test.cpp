#include "viz/timeline/bands.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

constexpr Picoseconds kBandMicro = 1'000'000;

std::vector<std::vector<Band>> bands_of_all(const Timeline& t) {
  std::vector<std::vector<Band>> bands;
  for (const Process& p : t.processes) bands.push_back(bands_of(t, t.tracks[p.tracks[0]]));
  return bands;
}

}  // namespace

TEST(Bands, APassIsABandWithAName) {
  const Timeline t = made_generation();
  const std::vector<Band> bands = bands_of_all(t)[1];
  ASSERT_EQ(bands.size(), 9u);
  EXPECT_EQ(bands[0].begin, kBandMicro);
  EXPECT_EQ(bands[0].end, 41 * kBandMicro);
  EXPECT_EQ(name_of(t, bands[0]), "prefill");
  EXPECT_EQ(name_of(t, bands[8]), "decode 8");
  EXPECT_TRUE(bands_of(two_lanes(), two_lanes().tracks[0]).empty());  // has no phases
}

// Two models in turn: the student's forward and backward are one band, up to the teacher's next forward.
TEST(Bands, OfOneModelGoOnUntilTheOther) {
  TimelineBuilder b;
  b.timeline().phases = {"student", "teacher"};
  b.add_process({});
  const auto compute = b.add_thread(0, "compute", 0);
  const auto own = b.label("qkv", Kind::forward, KernelClass::gemm, 0);
  const auto back = b.label("qkv gradient", Kind::backward, KernelClass::gemm, 0);
  const auto other = b.label("qkv", Kind::forward, KernelClass::gemm, 1);
  EXPECT_NE(own, other);
  Picoseconds at = 0;
  for (const auto label : {other, own, back, other, own, back}) {
    b.add({at, at + 5, compute, label, 0});
    at += 10;
  }
  const Timeline t = b.finish(0);
  const std::vector<Band> bands = bands_of(t, t.tracks[0]);
  ASSERT_EQ(bands.size(), 4u);
  EXPECT_EQ(name_of(t, bands[1]), "student");
  EXPECT_EQ(bands[1].begin, 10);
  EXPECT_EQ(bands[1].end, 25);
}

TEST(Bands, StatisticsAreOfEachPhase) {
  const Timeline t = made_generation();
  const auto bands = bands_of_all(t);
  const std::vector<OpStatistics> rows = phase_statistics(t, bands, 0, t.end);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_EQ(rows[0].mean(), 40 * kBandMicro);
  EXPECT_EQ(rows[1].count, 16);
  EXPECT_EQ(rows[1].total, 160 * kBandMicro);
  EXPECT_EQ(phase_statistics(t, bands, 42 * kBandMicro, t.end).size(), 1u);  // no prompt begins there
  const OpSpread spread = spread_of_phase(bands, 1, 0, t.end);
  EXPECT_EQ(spread.columns.size(), 8u);
  EXPECT_EQ(spread.processes, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(spread.mean[1][7], 10 * kBandMicro);
}
