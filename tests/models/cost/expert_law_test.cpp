#include "models/cost/expert_law.h"

#include <gtest/gtest.h>

#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

constexpr ExpertLaw kLaw = {.fraction = 0.8, .start_us = 10, .half_rows = 16, .prologue_us = 0.5};

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

// Rows that are spread unevenly take more tiles, which are less full: half a tile more for an expert with many, none
// with few.
TEST(ExpertLaw, UnevenRowsTakeMoreTiles) {
  GroupedGemm g = experts(64 * 256);
  const double even = us(g);
  g.uneven = true;
  EXPECT_GT(us(g), 1.08 * even);
  EXPECT_LT(us(g), 1.3 * even);
  GroupedGemm few = experts(64);
  const double one = us(few);
  few.uneven = true;
  EXPECT_NEAR(us(few), one, 1e-3 * one);
}

TEST(ExpertLaw, MoreRowsNeverTakeLess) {
  double before = 0;
  for (std::int64_t rows = 64; rows <= 64 * 1024; rows += 64) {
    const double now = us(experts(rows));
    EXPECT_GE(now, before * (1 - 1e-12)) << rows;
    before = now;
  }
}

// A tile's loop over the sum takes its time however few rows there are.
TEST(ExpertLaw, FewTilesTakeTheirLoop) {
  ExpertLaw deep = kLaw;
  deep.depth_us = 0.5;
  const GroupedGemm one = {.groups = 1, .rows = 1, .out = 512, .in = 6400, .even = true};
  EXPECT_NEAR(experts_time(one, Precision::bf16, find_gpu("h100-sxm"), deep) * 1e6, 10 + 50, 0.5);
}

// A kernel finds the rows of other ranks' experts among its own.
TEST(ExpertLaw, PassedRowsTakeTime) {
  ExpertLaw law = kLaw;
  law.passed_ns = 5;
  GroupedGemm g = experts(64);
  const double none = experts_time(g, Precision::bf16, find_gpu("h100-sxm"), law);
  g.passed = 1000;
  EXPECT_NEAR(experts_time(g, Precision::bf16, find_gpu("h100-sxm"), law) - none, 5e-6, 1e-12);
}

TEST(ExpertLaw, FormatsAreTold) {
  const WeightFormat int4 = {.code = WeightCode::int4, .group = 128}, blocks = {.code = WeightCode::fp8, .group = 128};
  const WeightFormat nvfp4 = {.code = WeightCode::nvfp4, .group = 16}, mxfp4 = {.code = WeightCode::mxfp4, .group = 32};
  EXPECT_EQ(expert_format(Precision::bf16, {}), ExpertFormat::bf16);
  EXPECT_EQ(expert_format(Precision::bf16, int4), ExpertFormat::int4);
  EXPECT_EQ(expert_format(Precision::bf16, nvfp4), ExpertFormat::fp4);
  EXPECT_EQ(expert_format(Precision::bf16, mxfp4), ExpertFormat::fp4);
  EXPECT_EQ(expert_format(Precision::mxfp8, mxfp4), ExpertFormat::fp4_fp8);
  EXPECT_EQ(expert_format(Precision::fp8, format_of_precision(Precision::fp8)), ExpertFormat::fp8);
  EXPECT_EQ(expert_format(Precision::fp8, blocks), ExpertFormat::fp8_blocks);
  EXPECT_EQ(expert_format(Precision::nvfp4, format_of_precision(Precision::nvfp4)), ExpertFormat::nvfp4);
  EXPECT_FALSE(expert_format(Precision::bf16, {.code = WeightCode::int8}));  // which no table has
  const ExpertLaws laws = {{ExpertFormat::int4, kLaw}};
  EXPECT_EQ(law_of(laws, Precision::bf16, int4), &laws.at(ExpertFormat::int4));
  EXPECT_EQ(law_of(laws, Precision::bf16, {}), nullptr);
}

// Codes of 4 bits are read in about a quarter of the time of weights in 16 bits.
TEST(ExpertLaw, NarrowWeightsAreReadSooner) {
  GroupedGemm narrow = experts(64);
  narrow.weights = {.code = WeightCode::int4, .group = 128};
  const double narrow_us = experts_time(narrow, Precision::bf16, find_gpu("h100-sxm"), kLaw) * 1e6;
  EXPECT_NEAR((narrow_us - 10) / (us(experts(64)) - 10), 0.25, 0.04);
}

TEST(ExpertLaw, IsThatOfTheFrameworkAndTheGeneration) {
  const auto start_us = [](std::string_view framework, const char* gpu) {
    const ExpertLaws laws = find_expert_laws(framework, find_gpu(gpu));
    const auto found = laws.find(ExpertFormat::bf16);
    return found == laws.end() ? -1 : found->second.start_us;
  };
  const double hopper = start_us("vllm", "h100-sxm");
  EXPECT_GT(hopper, 0);
  EXPECT_EQ(start_us("vllm", "h200-sxm"), hopper);
  EXPECT_NE(start_us("vllm", "b200"), hopper);
  EXPECT_NE(start_us("trtllm", "h100-sxm"), hopper);
  EXPECT_EQ(start_us("vllm", "v100-pcie"), -1);
  EXPECT_EQ(start_us("profile", "h100-sxm"), -1);
}

// No product of experts in 16 and 8 bits is faster than a long product of the GPU.
TEST(ExpertLaw, FractionsAreOfTheGpusOwnProducts) {
  const auto share = [](const char* gpu, ExpertFormat format) {
    return peak_share(format, find_gpu(gpu), built_in_kernel_laws());
  };
  EXPECT_EQ(share("h100-sxm", ExpertFormat::bf16), built_in_kernel_laws().rates.at("h100-sxm").bf16);
  EXPECT_EQ(share("h200-sxm", ExpertFormat::fp8), built_in_kernel_laws().rates.at("h100-sxm").fp8);
  EXPECT_LT(share("l40s", ExpertFormat::bf16), share("a100-sxm-80gb", ExpertFormat::bf16));
  EXPECT_EQ(share("v100-pcie", ExpertFormat::bf16), 1);
  EXPECT_EQ(share("b200", ExpertFormat::nvfp4), 1) << "long products in 4 bits have no rate";
  EXPECT_FALSE(find_expert_laws("vllm", find_gpu("a100-sxm-80gb")).contains(ExpertFormat::fp8));
}

}  // namespace
}  // namespace orrery
