#include "sim/kernels/fit_experts.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr ExpertLaw kMade = {.half_rows = 30,
                             .prologue_us = 0.6,
                             .overlap = 3,
                             .memory = 0.7,
                             .traffic = 1.5,
                             .bf16 = 0.6,
                             .fp8 = 0.5,
                             .fp8_blocks = 0.3,
                             .nvfp4 = 0,
                             .int4 = 0.2,
                             .fp4 = 0.4,
                             .bf16_start_us = 6};

KernelFamily<ExpertLaw> family(const ExpertLaw& law) {
  return {.name = "experts", .gpus = {"h100-sxm"}, .framework = "vllm", .kernels = {"triton"}, .law = law};
}

KernelRow row_of(std::int64_t rows, std::int64_t groups, std::int64_t width, std::uint64_t shapes) {
  KernelRow row{.gpu = "h100-sxm",
                .kind = "experts",
                .framework = "vllm",
                .precision = "bfloat16",
                .kernel = "triton",
                .shapes = shapes};
  for (const auto& [out, in] : {std::pair<std::int64_t, std::int64_t>(2 * width, 4096), {4096, width}}) {
    Op op;
    op.work = GroupedGemm{.groups = std::min(groups, rows), .rows = rows, .out = out, .in = in, .even = true};
    op.precision = Precision::bf16;
    row.ops.push_back(op);
  }
  row.measured = time_of_experts(row, find_gpu("h100-sxm"), kMade);
  return row;
}

KernelRows rows_by_law() {
  KernelRows rows;
  std::uint64_t shapes = 0;
  for (const std::int64_t groups : {8, 32, 128}) {
    for (const std::int64_t width : {768, 2048, 14336}) {
      ++shapes;
      for (std::int64_t n = 1; n <= 65536; n *= 2) rows.rows.push_back(row_of(n, groups, width, shapes));
    }
  }
  return rows;
}

// A family may choose a kernel in one format alone.
TEST(FitExperts, PassesOverKernelsThatAFamilyDoesNotChoose) {
  KernelLaws laws;
  laws.experts = {family(kMade)};
  laws.experts[0].kernels = {"cutlass", "triton/bfloat16"};
  KernelRow row = row_of(64, 8, 768, 1);
  EXPECT_FALSE(is_passed_over(row, laws));
  row.precision = "fp8";
  EXPECT_TRUE(is_passed_over(row, laws));
  EXPECT_FALSE(is_used_to_fit(row, laws.experts[0]));
  row.kernel = "cutlass";
  EXPECT_FALSE(is_passed_over(row, laws));
  row.kernel = "another";
  row.framework = "sglang";
  EXPECT_FALSE(is_passed_over(row, laws)) << "no family of its framework";
}

TEST(FitExperts, FindsTheLawThatRowsWereMadeWith) {
  ExpertLaw begin = kMade;
  begin.bf16_start_us = 12;
  begin.memory = 0.9;
  begin.bf16 = 0.9;
  KernelFamily<ExpertLaw> found = family(begin);
  const KernelRows rows = rows_by_law();
  fit_experts(rows, found);
  for (const KernelRow& row : rows.rows)
    EXPECT_NEAR(time_of_experts(row, find_gpu(row.gpu), found.law) / row.measured, 1, 0.05);
  EXPECT_NEAR(found.law.bf16, 0.6, 0.05);
  EXPECT_NEAR(found.law.memory, 0.7, 0.03);
  EXPECT_EQ(found.law.fp8, begin.fp8);  // which no row tells of
}

TEST(FitExperts, UsesItsOwnKernelsAndNoneThatJudge) {
  KernelRow row = row_of(64, 8, 2048, 1);
  EXPECT_TRUE(is_used_to_fit(row, family(kMade)));
  row.shapes = kShapeParts;
  EXPECT_FALSE(is_used_to_fit(row, family(kMade)));
  row.shapes = 1;
  row.kernel = "cutlass";
  EXPECT_FALSE(is_used_to_fit(row, family(kMade)));
  row.kernel = "triton";
  row.gpu = "b200";
  EXPECT_FALSE(is_used_to_fit(row, family(kMade)));
}

}  // namespace
}  // namespace orrery
