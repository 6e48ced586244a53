#include "viz/timeline/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

constexpr Picoseconds kCountedMicro = 1'000'000;

}  // namespace

TEST(Statistics, SumUpEveryOp) {
  const Timeline t = two_lanes();
  const auto rows = op_statistics(t, 0, t.end);
  ASSERT_EQ(rows.size(), 3u);
  for (const OpStatistics& s : rows) {
    EXPECT_EQ(s.total, 20 * kCountedMicro) << t.labels[s.label].name;
    EXPECT_EQ(s.count, t.labels[s.label].name == "qkv gradient" ? 1 : 2);
    EXPECT_EQ(s.mean(), s.total / s.count);
    EXPECT_LE(s.least, s.median);
    EXPECT_LE(s.median, s.p95);
    EXPECT_LE(s.p95, s.most);
  }
  EXPECT_EQ(op_statistics(t, 45 * kCountedMicro, t.end).size(), 1u);  // only the last gather begins there
}

TEST(Statistics, OfATraceWithoutADeviceAreThoseOfItsHost) {
  TimelineBuilder b;
  b.add_process({});
  b.add({0, 10, b.add_thread(0, "thread", 0), b.label("aten::mm", Kind::host), 0});
  const Timeline t = b.finish(0);
  ASSERT_TRUE(is_of_hosts(t));
  ASSERT_EQ(op_statistics(t, 0, 10).size(), 1U);
  EXPECT_EQ(op_statistics(t, 0, 10)[0].total, 10);
}

TEST(Statistics, AHistogramCountsEveryDuration) {
  const Histogram h = histogram_of({1, 2, 3, 10}, 3);
  EXPECT_EQ(h.least, 1);
  EXPECT_EQ(h.counts, (std::vector<std::int64_t>{3, 0, 1}));
  EXPECT_EQ(histogram_of({}, 4).counts, (std::vector<std::int64_t>(4, 0)));
  EXPECT_EQ(histogram_of({5, 5}, 0).counts, (std::vector<std::int64_t>{2}));
}

TEST(Statistics, AnOpIsSpreadOverRanksAndMicroBatches) {
  const Timeline t = made_pipeline();
  for (std::uint32_t label = 0; label < t.labels.size(); ++label) {
    if (t.labels[label].name != "mlp up") continue;
    const OpSpread spread = spread_of(t, label, 0, t.end);
    EXPECT_EQ(spread.durations.size(), 64u);
    EXPECT_EQ(spread.columns.size(), 8u);
    EXPECT_EQ(spread.processes, (std::vector<std::uint32_t>{0, 1}));
    for (const auto& row : spread.mean) {
      for (const Picoseconds mean : row) EXPECT_EQ(mean, 2 * kCountedMicro);
    }
  }
}
