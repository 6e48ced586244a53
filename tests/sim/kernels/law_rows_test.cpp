#include "sim/kernels/law_rows.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery {
namespace {

KernelRow product(const std::string& framework, const std::string& precision, std::int64_t n, std::int64_t k) {
  KernelRow row{.gpu = "l40s", .kind = "gemm", .framework = framework, .precision = precision};
  Op op;
  op.work = Gemm{.m = 64, .n = n, .k = k, .result_bytes = 2};
  op.precision = precision == "bfloat16" ? Precision::bf16 : Precision::fp8;
  row.ops = {op};
  row.measured = 1e-5;
  return row;
}

// Three copies of weights of 33.5 MB are exactly as large as the cache of an L40S, 96 MiB; those of 40 MB exceed it.
TEST(LawRows, RotatedWeightsStayInTheCacheOrNot) {
  const Gpu gpu = find_gpu("l40s");
  EXPECT_TRUE(product_row(product("trtllm", "bfloat16", 4096, 4096), gpu)->cached);
  EXPECT_FALSE(product_row(product("trtllm", "bfloat16", 4096, 5120), gpu)->cached);
  EXPECT_FALSE(product_row(product("vllm", "bfloat16", 4096, 4096), gpu)->cached);
  EXPECT_TRUE(product_row(product("vllm", "bfloat16", 1024, 4096), gpu)->cached);
}

TEST(LawRows, OperandsOfEightBitProductsAreCastFirst) {
  const Gpu gpu = find_gpu("l40s");
  EXPECT_EQ(product_row(product("trtllm", "bfloat16", 512, 512), gpu)->cast.kernels, 0);
  EXPECT_EQ(product_row(product("trtllm", "fp8", 512, 512), gpu)->cast.kernels, 4);
  EXPECT_EQ(product_row(product("sglang", "fp8", 512, 512), gpu)->cast.kernels, 1);
}

// The A100's cache of 40 MB holds 20 MB for each multiprocessor, in both places that ask.
TEST(LawRows, CachesOfTwoPartsHoldHalf) {
  const Gpu gpu = find_gpu("a100-sxm-80gb");
  EXPECT_DOUBLE_EQ(held_in_cache(gpu), gpu.l2_MB * 1048576 / 2);
  EXPECT_FALSE(product_row(product("vllm", "bfloat16", 1024, 2048), gpu)->cached);  // six times 4 MB
  EXPECT_TRUE(product_row(product("vllm", "bfloat16", 512, 2048), gpu)->cached);
}

TEST(LawRows, RowsThatLawsAreNotForHaveNoTime) {
  const KernelLaws& laws = built_in_kernel_laws();
  EXPECT_FALSE(product_row(product("trtllm", "fp8", 512, 512), find_gpu("a100-sxm-80gb")));
  KernelRow row{.gpu = "l40s", .kind = "attention, causal"};
  FlashAttention a{.batch = 1, .heads = 8, .kv_heads = 8, .query = 512, .key = 512, .head_dim = 128, .value_dim = 128};
  a.direction = Direction::backward;
  row.ops = {Op{}};
  row.ops[0].work = a;
  EXPECT_FALSE(attention_row(row));
  KernelRow empty = product("trtllm", "bfloat16", 64, 64);
  KernelLaws broken = laws;
  broken.rates.at("l40s").start_us = std::nan("");
  EXPECT_FALSE(time_by_laws(empty, find_gpu("l40s"), broken));
}

TEST(LawRows, LawsHoldForKnownGpusAndKinds) {
  const KernelLaws& laws = built_in_kernel_laws();
  KernelRow row = product("trtllm", "bfloat16", 4096, 4096);
  EXPECT_TRUE(time_by_laws(row, find_gpu("l40s"), laws));
  EXPECT_TRUE(is_fitted(row, laws));
  EXPECT_FALSE(is_fitted(product("vllm", "bfloat16", 4096, 4096), laws));
  EXPECT_FALSE(is_fitted(product("trtllm", "fp8_block", 4096, 4096), laws));
  for (const char* wide : {"half", "float16"}) {
    row.precision = wide;
    EXPECT_TRUE(is_fitted(row, laws));
  }
  row.kind = "gemm, sustained";
  EXPECT_FALSE(is_fitted(row, laws));
  row.gpu = "v100-pcie";
  EXPECT_FALSE(time_by_laws(row, find_gpu("v100-pcie"), laws));
  row = product("trtllm", "fp8", 4096, 4096);
  row.gpu = "a100-sxm-80gb";
  EXPECT_FALSE(time_by_laws(row, find_gpu("a100-sxm-80gb"), laws));
  row.gpu = "l40s";
  row.kind = "experts";
  EXPECT_FALSE(time_by_laws(row, find_gpu("l40s"), laws));
}

}  // namespace
}  // namespace orrery
