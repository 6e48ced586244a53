#include "models/cost/product_kernels.h"

#include <gtest/gtest.h>

#include "models/cost/generation_figures.h"
#include "models/cost/kernel_time.h"
#include "models/cost/profile.h"

namespace orrery {
namespace {

TEST(ProductKernels, AreTheGpusOwnOrThoseOfItsGeneration) {
  const auto rates = [](const char* gpu) { return find_product_kernels(find_gpu(gpu)); };
  ASSERT_TRUE(rates("h100-sxm"));
  EXPECT_EQ(rates("h200-sxm")->rates.bf16, rates("h100-sxm")->rates.bf16);
  EXPECT_NE(rates("b200")->rates.bf16, rates("b300")->rates.bf16);
  EXPECT_FALSE(rates("v100-pcie"));
  EXPECT_FALSE(rates("h20")) << "whose peak is cut, not its clock";
}

TEST(ProductKernels, LawIsForFewRowsInSixteenAndEightBits) {
  const Gemm g = {.m = 8, .n = 4096, .k = 4096};
  EXPECT_TRUE(has_product_law(g, Precision::bf16));
  EXPECT_TRUE(has_product_law(g, Precision::fp8));
  EXPECT_FALSE(has_product_law(g, Precision::nvfp4));
  EXPECT_TRUE(has_narrow_product_law(g, Precision::nvfp4));
  EXPECT_FALSE(has_narrow_product_law(g, Precision::fp8));
  Gemm other = g;
  other.weights = {.code = WeightCode::fp8};
  EXPECT_TRUE(has_product_law(other, Precision::fp8));
  EXPECT_FALSE(has_product_law(other, Precision::bf16));  // widened before
  other = g;
  other.m = 64;
  EXPECT_FALSE(has_product_law(other, Precision::bf16));
  other = g;
  other.weights = {.code = WeightCode::int4, .group = 128};
  EXPECT_FALSE(has_product_law(other, Precision::bf16));
  other = g;
  other.role = Gemm::Role::weight_gradient;
  EXPECT_FALSE(has_product_law(other, Precision::bf16));
}

// Times do not fall where the law of few rows ends.
TEST(ProductKernels, MoreRowsTakeNoLess) {
  const Gpu gpu = find_gpu("b200");
  Profile profile = generating(find_profile(gpu));
  profile.products = find_product_kernels(gpu);
  profile.narrow_products = find_narrow_product_law("trtllm", gpu);
  for (const Precision precision : {Precision::bf16, Precision::fp8, Precision::nvfp4}) {
    Op op = {.precision = precision};
    const auto time = [&](std::int64_t rows) {
      op.work = Gemm{.m = rows, .n = 8192, .k = 8192, .result_bytes = 2};
      return kernel_time(op, 2, gpu, profile, "flash");
    };
    EXPECT_GE(time(64), time(63));
    EXPECT_GT(time(4096), time(64));
    const Seconds few = time(8);
    const auto& g = std::get<Gemm>(op.work);
    const auto& [rates, law] = *profile.products;
    EXPECT_DOUBLE_EQ(few, precision == Precision::nvfp4
                              ? narrow_product_time(g, gpu, *profile.narrow_products)
                              : product_time(g, precision == Precision::fp8, false, {}, gpu, rates, law));
  }
}

// A router's product of four tokens waits for its loop over the sum, not for a wave of large tiles: measured ones of
// 2,880 x 128 take 4 us (TensorRT-LLM 1.3 on B200).
TEST(ProductKernels, SmallProductsTakeMicroseconds) {
  const Gpu gpu = find_gpu("b200");
  Profile profile = find_profile(gpu);
  profile.generates = true;
  Op op = {.precision = Precision::bf16};
  op.work = Gemm{.m = 4, .n = 128, .k = 2880};
  const double before = kernel_time(op, 2, gpu, profile, "flash");
  profile.products = find_product_kernels(gpu);
  EXPECT_NEAR(kernel_time(op, 2, gpu, profile, "flash") * 1e6, 4, 1);
  EXPECT_GT(before * 1e6, 5);
}

}  // namespace
}  // namespace orrery
