#include "models/cost/expert_law.h"

#include <gtest/gtest.h>

#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

constexpr ExpertLaw kLaw = {.half_rows = 16,
                            .prologue_us = 0.5,
                            .overlap = 2,
                            .memory = 0.9,
                            .traffic = 1,
                            .bf16 = 0.8,
                            .fp8 = 0.7,
                            .fp8_blocks = 0.3,
                            .nvfp4 = 0,
                            .int4 = 0.25,
                            .fp4 = 0.5,
                            .bf16_start_us = 10,
                            .int4_start_us = 10};

GroupedGemm experts(std::int64_t rows, std::int64_t groups = 64) {
  return {.groups = groups, .rows = rows, .out = 4096, .in = 7168, .even = true};
}

double us(const GroupedGemm& g, Precision p = Precision::bf16) {
  return experts_time(g, p, find_gpu("h100-sxm"), kLaw) * 1e6;
}

TEST(ExpertLaw, FewRowsWaitForTheWeights) {
  const double bytes = 2.0 * 64 * 4096 * 7168;
  EXPECT_NEAR(us(experts(64)), 10 + bytes / (3350e3 * 0.9), 0.02 * bytes / (3350e3 * 0.9));
  EXPECT_NEAR(us(experts(64, 32)) - 10, (us(experts(64)) - 10) / 2, 0.02 * us(experts(64)));
}

// A tile of 256 rows runs at 256 / 272 of the fraction.
TEST(ExpertLaw, ManyRowsTakeTheArithmetic) {
  const GroupedGemm g = experts(64 * 4096);
  const double flops = 2.0 * 64 * 4096 * 4096 * 7168;
  const double least = flops / (989e6 * 0.8);
  EXPECT_GT(us(g), least * 272 / 256);
  EXPECT_LT(us(g), least * 1.15);
}

TEST(ExpertLaw, MoreRowsNeverTakeLess) {
  double before = 0;
  for (std::int64_t rows = 64; rows <= 64 * 1024; rows += 64) {
    const double now = us(experts(rows));
    EXPECT_GE(now, before * (1 - 1e-12)) << rows;
    before = now;
  }
}

TEST(ExpertLaw, AFormatHasItsFraction) {
  const WeightFormat int4 = {.code = WeightCode::int4, .group = 128}, blocks = {.code = WeightCode::fp8, .group = 128};
  EXPECT_EQ(rate_of(kLaw, Precision::bf16, {}).fraction, 0.8);
  EXPECT_EQ(rate_of(kLaw, Precision::bf16, int4).fraction, 0.25);
  EXPECT_EQ(rate_of(kLaw, Precision::bf16, {.code = WeightCode::nvfp4, .group = 16}).fraction, 0.5);
  EXPECT_EQ(rate_of(kLaw, Precision::fp8, format_of_precision(Precision::fp8)).fraction, 0.7);
  EXPECT_EQ(rate_of(kLaw, Precision::fp8, blocks).fraction, 0.3);
  EXPECT_EQ(rate_of(kLaw, Precision::nvfp4, format_of_precision(Precision::nvfp4)).fraction, 0);
  EXPECT_EQ(rate_of(kLaw, Precision::bf16, {.code = WeightCode::int8}).fraction, 0);  // which no table has
}

// Codes of 4 bits are read in about a quarter of the time of weights in 16 bits.
TEST(ExpertLaw, NarrowWeightsAreReadSooner) {
  GroupedGemm narrow = experts(64);
  narrow.weights = {.code = WeightCode::int4, .group = 128};
  ExpertLaw fast = kLaw;
  fast.int4 = fast.bf16;
  const double narrow_us = experts_time(narrow, Precision::bf16, find_gpu("h100-sxm"), fast) * 1e6;
  EXPECT_NEAR((narrow_us - 10) / (us(experts(64)) - 10), 0.25, 0.04);
}

TEST(ExpertLaw, IsThatOfTheFrameworkAndTheGeneration) {
  const ExpertLaw* hopper = find_expert_law("vllm", find_gpu("h100-sxm"));
  ASSERT_NE(hopper, nullptr);
  EXPECT_EQ(find_expert_law("vllm", find_gpu("h200-sxm")), hopper);
  EXPECT_NE(find_expert_law("vllm", find_gpu("b200")), hopper);
  EXPECT_NE(find_expert_law("trtllm", find_gpu("h100-sxm")), hopper);
  EXPECT_EQ(find_expert_law("vllm", find_gpu("v100-pcie")), nullptr);
  EXPECT_EQ(find_expert_law("profile", find_gpu("h100-sxm")), nullptr);
}

}  // namespace
}  // namespace orrery
