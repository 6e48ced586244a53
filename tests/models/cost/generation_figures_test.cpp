#include "models/cost/generation_figures.h"

#include <gtest/gtest.h>

#include "models/cost/kernel_time.h"

namespace orrery {
namespace {

double us_of(const Work& work, std::string_view gpu, bool generates, Precision precision = Precision::bf16) {
  Op op;
  op.work = work;
  op.precision = precision;
  const Gpu& device = find_gpu(gpu);
  Profile profile = find_profile(device);
  profile.generates = generates;
  return 1e6 * kernel_time(op, 2, device, profile, "cudnn");
}

// Products of 8 rows read their weights at about 0.79 of the memory's rate on H100 and 0.75 on B200.
TEST(GenerationFigures, ProductsOfFewRowsReadWeights) {
  const Gemm product = {.m = 8, .n = 28672, .k = 8192, .result_bytes = 2};
  const double bytes = 2.0 * 28672 * 8192;
  EXPECT_NEAR(bytes / 3.35e12 * 1e6 / us_of(product, "h100-sxm", true), 0.80, 0.06);
  EXPECT_NEAR(bytes / 8e12 * 1e6 / us_of(product, "b200", true), 0.77, 0.08);
  EXPECT_LT(us_of(product, "h100-sxm", true), us_of(product, "h100-sxm", false));
}

// Attention of one token to a cache: 7 to 12 us at least, and about 0.82 of the memory's rate where there is much to
// read.
TEST(GenerationFigures, AttentionReadsTheCache) {
  FlashAttention work{
      .batch = 64, .heads = 8, .kv_heads = 8, .query = 1, .key = 8192, .head_dim = 128, .value_dim = 128};
  work.cached = 8191;
  work.cached_row = 2 * 8 * 128 * 2;
  work.pairs = 8192;
  const double bytes = 64.0 * 8191 * 4096;
  EXPECT_NEAR(bytes / 3.35e12 * 1e6 / us_of(work, "h100-sxm", true), 0.84, 0.04);
  work.batch = 1;
  work.cached = 63;
  work.pairs = 64;
  const double least = us_of(work, "h100-sxm", true);
  EXPECT_GT(least, 7);
  EXPECT_LT(least, 12);
}

// A chain of small operations is one kernel: sums and casts cost their bytes alone.
TEST(GenerationFigures, ChainsAreFused) {
  const Residual sum = {.rows = 8, .columns = 8192};
  EXPECT_LT(us_of(sum, "h100-sxm", true), 1);
  EXPECT_GT(us_of(sum, "h100-sxm", false), 1);
}

// Attention on CUDA cores multiplies in fp32: 4 FLOPs for each pair and column, below half of the peak of 19.5 TFLOP/s.
// A step of Mistral 7B with 120 sequences of 1,152 tokens took A100 31.8 ms under TensorRT-LLM 0.9, of which some 12 ms
// are not attention's.
TEST(GenerationFigures, AttentionOnCudaCoresTakesLonger) {
  FlashAttention work{
      .batch = 120, .heads = 32, .kv_heads = 8, .query = 1, .key = 1152, .head_dim = 128, .value_dim = 128};
  work.cached = 1151;
  work.cached_row = 2 * 8 * 128 * 2;
  work.pairs = 1152;
  const double together = us_of(work, "a100-sxm-80gb", true);
  work.on_cuda_cores = true;
  const double apart = us_of(work, "a100-sxm-80gb", true);
  EXPECT_GT(apart, 4.0 * 120 * 32 * 1152 * 128 / (19.5e12 / 2) * 1e6);
  EXPECT_LT(together, apart * 0.8);
  EXPECT_NEAR(32 * apart / 1000, 31.8 - 12, 6);
}

// A session of TensorRT-LLM's early benchmarks takes milliseconds to set up.
TEST(GenerationFigures, SessionsOfEarlyBenchmarksAreSetUp) {
  EXPECT_GT(session_us("tensorrt-llm-0.9"), 1000);
  EXPECT_EQ(session_us("tensorrt-llm"), 0);
}

}  // namespace
}  // namespace orrery
