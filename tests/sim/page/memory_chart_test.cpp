#include "sim/page/memory_chart.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;

TEST(MemoryChart, StacksWhatIsHeldBelowItsLimits) {
  const std::vector<MemorySample> samples = {{0, 0, {4 * kGiB, 0, 0, 0, 0, 0}},
                                             {500, 0, {4 * kGiB, 0, 0, 6 * kGiB, 0, 0}},
                                             {501, 0, {4 * kGiB, 0, 0, 1 * kGiB, 0, 0}}};
  const std::string chart = memory_chart({samples, 1000, 16 * kGiB, 12 * kGiB});
  EXPECT_TRUE(is_closed(chart));
  EXPECT_EQ(count(chart, "<path"), 2);  // no category without bytes
  // A peak of a thousandth of the step is not lost: its slot shows it.
  EXPECT_TRUE(has(chart, "activations, at most 6.00 GiB")) << chart;
  EXPECT_TRUE(has(chart, "the GPU has 16.00 GiB"));
  EXPECT_TRUE(has(chart, "taken of the GPU at most: 12.00 GiB"));
}

TEST(MemoryChart, IsOfBoundedSize) {
  std::vector<MemorySample> samples;
  for (Picoseconds t = 0; t < 200'000; ++t) samples.push_back({t, 0, {kGiB, t * 1000, kGiB, (t * 7919) % kGiB, 5, 6}});
  EXPECT_LT(memory_chart({samples, 200'000, 4 * kGiB, 4 * kGiB}).size(), 120'000U);
  EXPECT_EQ(memory_chart({{}, 1000, kGiB, kGiB}), "");
}

}  // namespace
}  // namespace orrery
