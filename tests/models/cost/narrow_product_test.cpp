#include "models/cost/narrow_product.h"

#include <gtest/gtest.h>

#include "models/cost/generation_figures.h"
#include "models/cost/kernel_time.h"
#include "models/cost/profile.h"

namespace orrery {
namespace {

constexpr NarrowProductLaw kNarrowLaw = {.start_us = 4, .memory = 0.5, .depth_us = 0.1, .overlap = 1};

double us_of(std::int64_t n, std::int64_t k) {
  return narrow_product_time(Gemm{.m = 8, .n = n, .k = k}, find_gpu("b200"), kNarrowLaw) / kMicrosecond;
}

TEST(NarrowProduct, IsItsFormula) {
  const Gpu gpu = find_gpu("b200");
  const double bytes_us = 0.5625 * 1024 * 8192 / (gpu.memory_GBps * 1e3 * 0.5);
  EXPECT_NEAR(us_of(1024, 8192), 4 + 0.1 * 128 + bytes_us, 1e-9);
  const std::int64_t waves = 2 * 128 * gpu.sms;  // columns of two waves of tiles
  EXPECT_NEAR(us_of(waves, 64), 4 + 0.1 * 2 + 0.5625 * static_cast<double>(waves) * 64 / (gpu.memory_GBps * 1e3 * 0.5),
              1e-9);
}

TEST(NarrowProduct, LawsAreThoseOfAFrameworkOnAGeneration) {
  const auto b200 = find_narrow_product_law("vllm", find_gpu("b200"));
  const auto b300 = find_narrow_product_law("vllm", find_gpu("b300"));
  ASSERT_TRUE(b200 && b300);
  EXPECT_EQ(b200->depth_us, b300->depth_us);
  EXPECT_TRUE(find_narrow_product_law("vllm", find_gpu("rtx-pro-6000-server")));
  EXPECT_FALSE(find_narrow_product_law("vllm", find_gpu("h100-sxm")));  // its tensor cores have no 4 bits
  EXPECT_FALSE(find_narrow_product_law("marlin", find_gpu("b200")));
}

// Without the law a product takes the formula of tiles, which is shorter: it knows nothing of the sum's length.
TEST(NarrowProduct, IsForFewRowsInFourBits) {
  Op op;
  op.precision = Precision::nvfp4;
  op.work = Gemm{.m = 8, .n = 8192, .k = 8192, .result_bytes = 2};
  const Gpu gpu = find_gpu("b200");
  Profile profile = generating(find_profile(gpu));
  const Seconds before = kernel_time(op, 2, gpu, profile, "");
  profile.narrow_products = kNarrowLaw;
  EXPECT_DOUBLE_EQ(kernel_time(op, 2, gpu, profile, ""), narrow_product_time(std::get<Gemm>(op.work), gpu, kNarrowLaw));
  EXPECT_GT(kernel_time(op, 2, gpu, profile, ""), before);
}

// A cast of generated text is a kernel only where nothing before it casts.
TEST(NarrowProduct, CastsTakeTimeWhereTheyAreKernels) {
  const Gpu gpu = find_gpu("b200");
  const Profile profile = generating(find_profile(gpu));
  Op op;
  op.work = Cast{.elements = 8, .from = 2, .to = 1};
  const Seconds within = kernel_time(op, 2, gpu, profile, "");
  std::get<Cast>(op.work).own_kernel = true;
  EXPECT_NEAR(kernel_time(op, 2, gpu, profile, "") - within, generation_figures().kernel_start_us * kMicrosecond,
              1e-12);
}

}  // namespace
}  // namespace orrery
