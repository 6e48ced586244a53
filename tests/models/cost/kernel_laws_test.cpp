#include "models/cost/kernel_laws.h"

#include <cmath>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

struct Laws {
  explicit Laws(const std::string& name) : gpu(find_gpu(name)), rates(built_in_kernel_laws().rates.at(name)) {
    products = family_of(built_in_kernel_laws().products, name)->law;
    attention = family_of(built_in_kernel_laws().attention, name)->law;
  }
  double product_us(std::int64_t m, std::int64_t n, std::int64_t k, bool eight_bit = false, bool cached = false,
                    OperandCast cast = {}) const {
    const Gemm g{.m = m, .n = n, .k = k, .result_bytes = 2};
    return product_time(g, eight_bit, cached, cast, gpu, rates, products) * 1e6;
  }
  double attention_us(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads = 8) const {
    FlashAttention a{.batch = batch, .heads = heads, .kv_heads = kv_heads, .query = tokens, .key = tokens};
    a.head_dim = a.value_dim = 128;
    return attention_time(a, gpu, rates, attention) * 1e6;
  }
  Gpu gpu;
  KernelRates rates;
  ProductLaw products;
  AttentionLaw attention;
};

// Measured: 1405, 737.2 and 4189 us (NVIDIA aiconfigurator 095f58a, TensorRT-LLM).
TEST(KernelLaws, LongProductsTakeWhatWasMeasured) {
  EXPECT_NEAR(Laws("h100-sxm").product_us(8192, 8192, 8192), 1405, 0.08 * 1405);
  EXPECT_NEAR(Laws("b200").product_us(8192, 8192, 8192), 737.2, 0.08 * 737.2);
  EXPECT_NEAR(Laws("a100-sxm-80gb").product_us(8192, 8192, 8192), 4189, 0.08 * 4189);
}

// Measured: 1680, 907.1 and 5130 us (the same tables), of a group of shapes that nothing is fitted to.
TEST(KernelLaws, JudgedProductsTakeWhatWasMeasured) {
  EXPECT_NEAR(Laws("h100-sxm").product_us(8192, 5120, 16384), 1680, 0.08 * 1680);
  EXPECT_NEAR(Laws("b200").product_us(8192, 5120, 16384), 907.1, 0.08 * 907.1);
  EXPECT_NEAR(Laws("a100-sxm-80gb").product_us(8192, 5120, 16384), 5130, 0.08 * 5130);
}

TEST(KernelLaws, ProductsOfFewRowsReadTheirWeights) {
  const Laws h100("h100-sxm");
  const double bytes = 2.0 * 16384 * 16384, least = bytes / (h100.gpu.memory_GBps * 1e3);
  EXPECT_GT(h100.product_us(8, 16384, 16384), least);
  EXPECT_LT(h100.product_us(8, 16384, 16384), 1.3 * least);
  const Laws l40s("l40s");
  EXPECT_LT(l40s.product_us(8, 2048, 4096, false, true), 0.7 * l40s.product_us(8, 2048, 4096));
}

TEST(KernelLaws, MakingAnOperandEightBitsWideTakesTime) {
  const Laws b200("b200");
  const double product = b200.product_us(4096, 4096, 4096, true);
  EXPECT_LT(product, b200.product_us(4096, 4096, 4096));
  EXPECT_GT(b200.product_us(4096, 4096, 4096, true, false, {4, 5}), product + 10);
}

// Measured: 3628 and 1803 us (NVIDIA aiconfigurator 095f58a, SGLang).
TEST(KernelLaws, AttentionTakesWhatWasMeasured) {
  EXPECT_NEAR(Laws("h100-sxm").attention_us(2, 8192, 64), 3628, 0.08 * 3628);
  EXPECT_NEAR(Laws("b200").attention_us(2, 8192, 64), 1803, 0.1 * 1803);
}

// Measured: 1045 and 534.5 us (the same tables), of a group of heads that nothing is fitted to.
TEST(KernelLaws, JudgedAttentionTakesWhatWasMeasured) {
  EXPECT_NEAR(Laws("h100-sxm").attention_us(1, 8192, 32, 32), 1045, 0.1 * 1045);
  EXPECT_NEAR(Laws("b200").attention_us(1, 8192, 32, 32), 534.5, 0.1 * 534.5);
}

// Few heads of a short sequence leave most multiprocessors without work: four times as many take hardly longer.
TEST(KernelLaws, AttentionOfFewHeadsDoesNotFillAGpu) {
  const Laws b200("b200");
  const double one = b200.attention_us(1, 512, 8) - b200.attention.start_us;
  const double four = b200.attention_us(4, 512, 8) - b200.attention.start_us;
  EXPECT_LT(four, 2.5 * one);
}

// Half a wave of blocks takes as long as the longest block, however little the last multiprocessor lags.
TEST(KernelLaws, AttentionTakesItsLongestBlock) {
  Laws h100("h100-sxm");
  h100.rates.attention_tail = 0;
  h100.attention.heat = h100.attention.result_passes = 0;
  const auto blocks = [&](std::int64_t heads) { return h100.attention_us(1, 128, heads) - h100.attention.start_us; };
  EXPECT_NEAR(blocks(66) / blocks(8), 1, 0.3);
  EXPECT_GT(blocks(8), 0.5 * blocks(132));
}

// Queries of all pairs have no diagonal that blocks of keys round up, and narrow values take less arithmetic.
TEST(KernelLaws, AttentionOfAllPairsAndOfNarrowValues) {
  Laws l40s("l40s");
  FlashAttention a{
      .batch = 4, .heads = 64, .kv_heads = 8, .query = 4096, .key = 4096, .head_dim = 128, .value_dim = 128};
  const auto us = [&] { return attention_time(a, l40s.gpu, l40s.rates, l40s.attention) * 1e6; };
  const double wide = us();
  a.value_dim = 64;
  EXPECT_LT(us(), 0.9 * wide);
  a.value_dim = 128;
  a.pairs = 4096.0 * 4096.0;
  const double all = us();
  l40s.attention.key_block *= 2;
  EXPECT_DOUBLE_EQ(us(), all);
  a.direction = Direction::backward;
  EXPECT_THROW(us(), Error);
  a.direction = Direction::forward;
  a.cached = 4096;
  EXPECT_THROW(us(), Error);
}

// A batch of products moves as many operands as they have alone.
TEST(KernelLaws, BatchesOfProductsMoveAllTheirOperands) {
  const Laws h100("h100-sxm");
  Gemm g{.m = 8, .n = 8192, .k = 8192, .result_bytes = 2};
  const double one = product_time(g, false, false, {}, h100.gpu, h100.rates, h100.products);
  g.batch = 8;
  EXPECT_GT(product_time(g, false, false, {}, h100.gpu, h100.rates, h100.products), 6 * one);
}

// Loads are slower than arithmetic at the same number of bytes, whatever the peak of arithmetic in 8 bits is.
TEST(KernelLaws, LoadsInEightBitsDoNotFollowThePeak) {
  Laws h100("h100-sxm");
  h100.products.intensity = 1000;
  const double before = h100.product_us(8192, 8192, 8192, true);
  h100.gpu.tflops["fp8"] *= 2;
  EXPECT_NEAR(h100.product_us(8192, 8192, 8192, true), before, 1e-6 * before);
}

TEST(KernelLaws, GreatProductsTakeNoLessThanTheirArithmetic) {
  const Laws h100("h100-sxm");
  const std::int64_t side = std::int64_t{1} << 31;
  for (const std::int64_t k : {std::int64_t{64}, std::int64_t{1} << 20, side}) {
    const double flops = 2 * std::pow(static_cast<double>(side), 2) * static_cast<double>(k);
    EXPECT_GT(h100.product_us(side, side, k), flops / peak_flops(h100.gpu, Precision::bf16) * 1e6);
  }
}

TEST(KernelLaws, ComputeCapabilitiesThatNobodyKnowsAreRefused) {
  Laws h100("h100-sxm");
  h100.gpu.compute_capability = 86;
  EXPECT_THROW(h100.product_us(64, 64, 64), Error);
}

}  // namespace
}  // namespace orrery
