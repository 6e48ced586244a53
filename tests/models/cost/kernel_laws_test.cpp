#include "models/cost/kernel_laws.h"

#include <gtest/gtest.h>

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
  double attention_us(std::int64_t batch, std::int64_t tokens, std::int64_t heads) const {
    FlashAttention a{.batch = batch, .heads = heads, .kv_heads = 8, .query = tokens, .key = tokens};
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

// Few heads of a short sequence leave most multiprocessors without work: four times as many take hardly longer.
TEST(KernelLaws, AttentionOfFewHeadsDoesNotFillAGpu) {
  const Laws b200("b200");
  const double one = b200.attention_us(1, 512, 8) - b200.attention.start_us;
  const double four = b200.attention_us(4, 512, 8) - b200.attention.start_us;
  EXPECT_LT(four, 2.5 * one);
}

}  // namespace
}  // namespace orrery
