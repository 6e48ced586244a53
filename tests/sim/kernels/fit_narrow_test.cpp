#include "sim/kernels/fit_narrow.h"

#include <gtest/gtest.h>

#include "sim/kernels/law_rows.h"

namespace orrery {
namespace {

constexpr NarrowProductLaw kMadeNarrow = {.start_us = 4, .memory = 0.8, .depth_us = 0.07, .overlap = 2};

KernelFamily<NarrowProductLaw> narrow_family(const NarrowProductLaw& law) {
  return {.name = "nvfp4", .gpus = {"b200"}, .framework = "vllm", .kernels = {}, .law = law};
}

KernelRow narrow_row(std::int64_t n, std::int64_t k, std::uint64_t shapes) {
  KernelRow row{.gpu = "b200", .kind = "gemm, few rows", .framework = "vllm", .precision = "nvfp4", .shapes = shapes};
  Op op;
  op.work = Gemm{.m = 16, .n = n, .k = k, .result_bytes = 2};
  op.precision = Precision::nvfp4;
  row.ops.push_back(op);
  row.measured = time_of_narrow(row, find_gpu("b200"), kMadeNarrow);
  return row;
}

KernelRows narrow_rows() {
  KernelRows rows;
  std::uint64_t shapes = 0;
  for (std::int64_t n = 512; n <= 65536; n *= 2) {
    for (std::int64_t k = 512; k <= 65536; k *= 2) rows.rows.push_back(narrow_row(n, k, ++shapes));
  }
  return rows;
}

TEST(FitNarrow, FindsTheLawThatRowsWereMadeWith) {
  KernelFamily<NarrowProductLaw> found = narrow_family({.start_us = 2, .memory = 0.5, .depth_us = 0.2, .overlap = 3});
  fit_narrow(narrow_rows(), found);
  EXPECT_NEAR(found.law.start_us, kMadeNarrow.start_us, 0.2);
  EXPECT_NEAR(found.law.memory, kMadeNarrow.memory, 0.04);
  EXPECT_NEAR(found.law.depth_us, kMadeNarrow.depth_us, 0.003);
  EXPECT_NEAR(found.law.overlap, kMadeNarrow.overlap, 0.2);
}

TEST(FitNarrow, JudgedRowsDoNotChangeIt) {
  KernelRows rows = narrow_rows();
  KernelFamily<NarrowProductLaw> before = narrow_family(kMadeNarrow), after = before;
  fit_narrow(rows, before);
  std::int64_t judged = 0;
  for (KernelRow& row : rows.rows) {
    if (!is_judged(row)) continue;
    row.measured *= 10;
    ++judged;
  }
  EXPECT_GT(judged, 0);
  fit_narrow(rows, after);
  EXPECT_EQ(after.law.depth_us, before.law.depth_us);
  EXPECT_EQ(after.law.start_us, before.law.start_us);
}

// Laws of products in 16 and 8 bits are not for such rows, nor this one for a framework without a family.
TEST(FitNarrow, RowsHaveTheLawOfTheirFramework) {
  KernelLaws laws = built_in_kernel_laws();
  laws.narrow = {narrow_family(kMadeNarrow)};
  KernelRow row = narrow_row(4096, 4096, 1);
  const Gpu gpu = find_gpu("b200");
  EXPECT_DOUBLE_EQ(time_by_laws(row, gpu, laws).value(), row.measured);
  row.framework = "trtllm";
  EXPECT_FALSE(time_by_laws(row, gpu, laws));
}

}  // namespace
}  // namespace orrery
