#include "sim/kernels/fit_experts.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr ExpertLaw kMade = {
    .fraction = 0.6, .start_us = 6, .half_rows = 30, .prologue_us = 0.6, .depth_us = 0.2, .passed_ns = 3};

KernelFamily<ExpertLaws> family(const ExpertLaws& laws) {
  return {.name = "experts", .gpus = {"h100-sxm"}, .framework = "vllm", .kernels = {"triton"}, .law = laws};
}

KernelRow row_of(std::int64_t rows, std::int64_t groups, std::int64_t width, std::uint64_t shapes,
                 std::int64_t passed = 0) {
  KernelRow row{.gpu = "h100-sxm",
                .kind = "experts",
                .framework = "vllm",
                .precision = "bfloat16",
                .kernel = "triton",
                .shapes = shapes};
  for (const auto& [out, in] : {std::pair<std::int64_t, std::int64_t>(2 * width, 4096), {4096, width}}) {
    Op op;
    op.work = GroupedGemm{
        .groups = std::min(groups, rows), .rows = rows, .out = out, .in = in, .even = true, .passed = passed};
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
      for (std::int64_t n = 1; n <= 65536; n *= 2) {
        for (const std::int64_t passed : {0, 7}) rows.rows.push_back(row_of(n, groups, width, shapes, passed * n));
      }
    }
  }
  return rows;
}

// A family may choose a kernel in one format alone.
TEST(FitExperts, PassesOverKernelsThatAFamilyDoesNotChoose) {
  KernelLaws laws;
  laws.experts = {family({})};
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
  const ExpertLaw other = {.fraction = 0.5};
  KernelFamily<ExpertLaws> found = family({{ExpertFormat::fp8, other}});
  const KernelRows rows = rows_by_law();
  fit_experts(rows, {}, found);
  const ExpertLaw& law = found.law.at(ExpertFormat::bf16);
  for (const KernelRow& row : rows.rows)
    EXPECT_NEAR(time_of_experts(row, find_gpu(row.gpu), law) / row.measured, 1, 0.05);
  EXPECT_NEAR(law.fraction, 0.6, 0.05);
  EXPECT_NEAR(law.passed_ns, 3, 0.3);
  EXPECT_EQ(found.law.at(ExpertFormat::fp8).fraction, 0.5);  // which no row tells of
}

TEST(FitExperts, UsesItsOwnKernelsAndNoneThatJudge) {
  KernelRow row = row_of(64, 8, 2048, 1);
  EXPECT_TRUE(is_used_to_fit(row, family({})));
  row.shapes = kShapeParts;
  EXPECT_FALSE(is_used_to_fit(row, family({})));
  row.shapes = 1;
  row.kernel = "cutlass";
  EXPECT_FALSE(is_used_to_fit(row, family({})));
  row.kernel = "triton";
  row.framework = "trtllm";
  EXPECT_TRUE(is_used_to_fit(row, family({}))) << "which a family names is its own by whomever it was called";
  row.gpu = "b200";
  EXPECT_FALSE(is_used_to_fit(row, family({})));
}

}  // namespace
}  // namespace orrery
