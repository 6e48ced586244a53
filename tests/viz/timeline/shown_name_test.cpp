#include "viz/timeline/shown_name.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(ShownName, IsTheUsefulHalfOfAKernelsName) {
  const auto shown = [](const std::string& name, Kind kind = Kind::product) { return shown_name({name, kind}); };
  EXPECT_EQ(shown("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(int)"),
            "cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1");
  EXPECT_EQ(shown("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"),
            "vectorized_elementwise_kernel CUDAFunctor_add");
  EXPECT_EQ(shown("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)"), "ncclKernel_AllReduce_RING_LL_Sum_float");
  // names of operators of the host, and of our own ops, stay
  EXPECT_EQ(shown("autograd::engine::evaluate_function: MmBackward0", Kind::host),
            "autograd::engine::evaluate_function: MmBackward0");
  EXPECT_EQ(shown("all-gather weights (next layer)", Kind::data), "all-gather weights (next layer)");
  EXPECT_EQ(shown("mlp up"), "mlp up");
}
