#include "sim/kernels/fit_laws.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/kernels/law_rows.h"

namespace orrery {
namespace {

// Rows of one GPU that take what the laws say.
KernelRows rows_by_laws(const KernelLaws& laws, const std::string& gpu) {
  KernelRows rows;
  std::uint64_t shape = 0;
  for (const std::int64_t n : {64, 512, 1024, 4096, 6144, 16384}) {
    for (const std::int64_t k : {64, 512, 2048, 4096, 12288}) {
      ++shape;
      for (const std::int64_t m : {1, 64, 512, 3072, 8192}) {
        KernelRow row{.gpu = gpu, .kind = "gemm", .framework = "trtllm", .precision = "bfloat16", .shapes = shape};
        Op op;
        op.work = Gemm{.m = m, .n = n, .k = k, .result_bytes = 2};
        op.precision = Precision::bf16;
        row.ops = {op};
        row.measured = time_by_laws(row, find_gpu(gpu), laws).value();
        rows.rows.push_back(row);
      }
    }
  }
  return rows;
}

TEST(FitLaws, FindsTheRatesThatRowsWereMadeWith) {
  const std::string gpu = "h100-sxm";
  KernelLaws laws = built_in_kernel_laws();
  KernelRates& made = laws.rates.at(gpu);
  made.bf16 = 0.6;
  made.memory = 0.7;
  made.start_us = 3;
  const KernelRows rows = rows_by_laws(laws, gpu);
  const KernelLaws found = fit_kernel_laws(rows, built_in_kernel_laws(), "", {});
  EXPECT_NEAR(found.rates.at(gpu).bf16, 0.6, 0.03);
  EXPECT_NEAR(found.rates.at(gpu).memory, 0.7, 0.03);
  EXPECT_NEAR(found.rates.at(gpu).start_us, 3, 0.2);
  EXPECT_EQ(found.rates.at(gpu).fp8, built_in_kernel_laws().rates.at(gpu).fp8);  // which no row tells of
  // GPUs without rows keep their numbers, and so does a family whose rows are left out.
  EXPECT_EQ(found.rates.at("l40s").bf16, built_in_kernel_laws().rates.at("l40s").bf16);
  const KernelLaws without = fit_kernel_laws(rows, built_in_kernel_laws(), gpu, {});
  EXPECT_EQ(to_json(without), to_json(built_in_kernel_laws()));
  EXPECT_NE(found.source.find("h100-sxm (120)"), std::string::npos) << found.source;
  EXPECT_NE(found.source.find("l40s (products)"), std::string::npos) << found.source;
  EXPECT_EQ(found.rates.at(gpu).bf16, rounded(found).rates.at(gpu).bf16);
}

// Rows of every fifth group of shapes judge laws: whatever they say, the laws stay the same.
TEST(FitLaws, JudgedRowsDoNotChangeIt) {
  KernelRows rows = rows_by_laws(built_in_kernel_laws(), "h100-sxm");
  std::erase_if(rows.rows, [](const KernelRow& row) { return std::get<Gemm>(row.ops[0].work).m < 512; });
  const std::string before = to_json(fit_kernel_laws(rows, built_in_kernel_laws(), "", {}));
  std::int64_t judged = 0;
  for (KernelRow& row : rows.rows) {
    if (!is_judged(row)) continue;
    row.measured *= 10;
    ++judged;
  }
  EXPECT_GT(judged, 0);
  EXPECT_EQ(to_json(fit_kernel_laws(rows, built_in_kernel_laws(), "", {})), before);
}

// Tables have three words for 16 bits.
TEST(FitLaws, RowsInHalfPrecisionAreUsed) {
  KernelLaws made = built_in_kernel_laws();
  made.rates.at("h100-sxm").bf16 = 0.6;
  KernelRows rows = rows_by_laws(made, "h100-sxm");
  std::erase_if(rows.rows, [](const KernelRow& row) { return std::get<Gemm>(row.ops[0].work).m < 3072; });
  for (KernelRow& row : rows.rows) row.precision = "half";
  EXPECT_NEAR(fit_kernel_laws(rows, built_in_kernel_laws(), "", {}).rates.at("h100-sxm").bf16, 0.6, 0.05);
}

TEST(FitLaws, TablesWithoutRowsOfFamiliesAreRefused) {
  EXPECT_THROW(fit_kernel_laws({}, built_in_kernel_laws(), "", {}), Error);
}

// A GPU whose tensor cores have no 8 bits may have such rows, of kernels that work in 16 bits.
TEST(FitLaws, EightBitRowsOfAGpuWithoutThemAreLeftOut) {
  KernelRows rows = rows_by_laws(built_in_kernel_laws(), "a100-sxm-80gb");
  std::erase_if(rows.rows, [](const KernelRow& row) { return std::get<Gemm>(row.ops[0].work).m < 3072; });
  KernelRow eight = rows.rows.front();
  eight.precision = "fp8";
  eight.ops[0].precision = Precision::fp8;
  rows.rows.push_back(eight);
  EXPECT_NO_THROW(fit_kernel_laws(rows, built_in_kernel_laws(), "", {}));
}

}  // namespace
}  // namespace orrery
