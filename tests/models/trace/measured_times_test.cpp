#include "models/trace/measured_times.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

// A product of these sizes, as shape_of() sees it.
Gemm gemm(double m, double n, double k) {
  return {.m = static_cast<std::int64_t>(m), .n = static_cast<std::int64_t>(n), .k = static_cast<std::int64_t>(k)};
}

// Efficiency that falls off for small sizes, as real kernels' does.
Seconds kernel(double m, double n, double k) { return 2e-6 + 2 * m * n * k / 40e9 * (1 + 8 / m) * (1 + 16 / n); }

MeasuredTimes sampled() {
  MeasuredTimes times;
  OpTable table{shape_of(gemm(1, 1, 1), 4).kind, {}};
  for (const double m : {16, 64, 256, 1024}) {
    for (const double n : {32, 128, 512}) {
      for (const double k : {64, 512}) table.samples.push_back({{m, n, k}, 2 * m * n * k, kernel(m, n, k), 0, 10});
    }
  }
  times.ops.push_back(table);
  return times;
}

TEST(MeasuredTimes, SamplesAreReproduced) {
  const MeasuredTimes times = sampled();
  for (const OpSample& s : times.ops[0].samples) {
    const auto t = measured_time(times, gemm(s.sizes[0], s.sizes[1], s.sizes[2]), 4);
    ASSERT_TRUE(t);
    EXPECT_NEAR(*t / s.seconds, 1, 1e-12);
  }
}

TEST(MeasuredTimes, BetweenSamplesOfASmoothKernelTheErrorIsSmall) {
  const MeasuredTimes times = sampled();
  double sum = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto pick = [&](std::uint64_t salt, double low, double high) {
      const double x = static_cast<double>(test::random_bits(i * 3 + salt) % 1000) / 999;
      return std::round(low * std::pow(high / low, x));
    };
    const double m = pick(0, 16, 1024), n = pick(1, 32, 512), k = pick(2, 64, 512);
    const double error = *measured_time(times, gemm(m, n, k), 4) / kernel(m, n, k) - 1;
    EXPECT_LT(std::abs(error), 0.2) << m << " " << n << " " << k;
    sum += std::abs(error);
  }
  EXPECT_LT(sum / 200, 0.06);
}

TEST(MeasuredTimes, MoreWorkTakesNoLessTime) {
  const MeasuredTimes times = sampled();
  for (const double n : {32, 100, 512, 2000}) {
    for (const double k : {64, 200, 4096}) {
      Seconds before = 0;
      for (double m = 4; m < 5000; m *= 1.3) {
        const Seconds t = *measured_time(times, gemm(m, n, k), 4);
        EXPECT_GE(t, before * 0.98) << m << " " << n << " " << k;
        before = t;
      }
    }
  }
}

// No shape is predicted to run faster than the best measured rate.
TEST(MeasuredTimes, NothingIsFasterThanTheFastestSample) {
  const MeasuredTimes times = sampled();
  double best = 0;
  for (const OpSample& s : times.ops[0].samples) best = std::max(best, s.amount / s.seconds);
  for (const double size : {1, 8, 300, 3000, 30000}) {
    const Gemm g = gemm(size, size, size);
    EXPECT_LE(shape_of(g, 4).amount / *measured_time(times, g, 4), best * (1 + 1e-9)) << size;
  }
}

TEST(MeasuredTimes, KindsThatWereNotMeasuredHaveNoTime) {
  const MeasuredTimes times = sampled();
  EXPECT_FALSE(measured_time(times, Add{100}, 4));
  EXPECT_FALSE(measured_time(times, gemm(16, 32, 64), 2));  // no sample for elements of another width
  Gemm added = gemm(16, 32, 64);
  added.accumulate = true;
  EXPECT_FALSE(measured_time(times, added, 4));
}

TEST(MeasuredTimes, TransfersFollowStraightLinesAndNeverGetFaster) {
  MeasuredTimes times;
  times.transfers.push_back({"all_reduce", 2, {{4, 10e-6}, {1000, 12e-6}, {100'000, 100e-6}, {1'000'000, 1e-3}}});
  const auto at = [&](Bytes bytes) { return *measured_transfer(times, "all_reduce", 2, bytes); };
  EXPECT_DOUBLE_EQ(at(4), 10e-6);
  EXPECT_DOUBLE_EQ(at(1000), 12e-6);
  EXPECT_DOUBLE_EQ(at(100'000), 100e-6);
  EXPECT_DOUBLE_EQ(at(1'000'000), 1e-3);
  EXPECT_NEAR(at(2'000'000), 2e-3, 1e-9);  // the last pair's bandwidth
  Seconds before = 0;
  for (Bytes bytes = 1; bytes < 100'000'000; bytes = bytes * 3 / 2 + 1) {
    EXPECT_GE(at(bytes), before);
    before = at(bytes);
  }
  EXPECT_FALSE(measured_transfer(times, "all_reduce", 4, 4));
  EXPECT_FALSE(measured_transfer(times, "all_gather", 2, 4));
}

TEST(MeasuredTimes, TablesAreFoundByNodes) {
  MeasuredTimes times;
  times.transfers = {{"all_reduce", 8, {{4, 1e-6}}, 1}, {"all_reduce", 8, {{4, 2e-6}}, 2}, {"message", 2, {{4, 3e-6}}}};
  EXPECT_EQ(find_transfers(times, "all_reduce", 8, 1), &times.transfers[0]);
  EXPECT_EQ(find_transfers(times, "all_reduce", 8, 2), &times.transfers[1]);
  EXPECT_EQ(find_transfers(times, "all_reduce", 8, 4), nullptr);
  EXPECT_EQ(find_transfers(times, "message", 2, 2), &times.transfers[2]);  // does not know its nodes
  EXPECT_EQ(find_transfers(times, "message", 4, 2), nullptr);
}

TEST(MeasuredTimes, SamplesCoverFromHalfToTwiceTheirSizes) {
  const TransferTable transfers{"all_reduce", 2, {{1000, 1e-6}, {4000, 2e-6}}};
  for (const auto& [bytes, inside] : {std::pair{499, false}, {500, true}, {8000, true}, {8001, false}})
    EXPECT_EQ(covers(transfers, bytes), inside) << bytes;
  MeasuredTimes times;
  const WorkShape shape = shape_of(gemm(64, 32, 16), 4);
  times.ops = {{shape.kind, {{shape.sizes, shape.amount, 1e-6}}}};
  EXPECT_TRUE(covered_time(times, gemm(128, 16, 16), 4));
  EXPECT_FALSE(covered_time(times, gemm(129, 16, 16), 4));
  EXPECT_FALSE(covered_time(times, gemm(64, 15, 16), 4));
  EXPECT_TRUE(measured_time(times, gemm(129, 16, 16), 4));
}

}  // namespace
}  // namespace orrery
