// How the benchmark of kernels uses a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/cuda/gpu_bench.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

cuda::GpuBench bench() {
  cuda::use_gpu(0);
  cuda::Sensors sensors(0);
  return cuda::bench_gpu(true, sensors);
}

// Each product that is measured reads other memory than the one before, so that no operand comes from the L2 cache;
// only the reference product, which shows the clocks, has operands of its own.
TEST(BenchOnNullGpu, OperandsComeFromMemory) {
  EXPECT_GT(bench().products.size(), 10U);
  EXPECT_THAT(null_gpu::products_of_cached_operands(), testing::ElementsAre("4096 x 4096 and 4096 x 4096"));
}

// A kernel of cuBLASLt that does not tell its tile is measured like any other.
TEST(BenchOnNullGpu, AnAlgorithmNeedNotTellAboutItself) {
  null_gpu::begin("cublasLtMatmulAlgoConfigGetAttribute", 2);
  EXPECT_GT(bench().products.size(), 10U);
  EXPECT_TRUE(null_gpu::has_failed());
}

}  // namespace
}  // namespace orrery
