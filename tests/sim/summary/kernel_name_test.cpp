#include "sim/summary/kernel_name.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(KernelName, KeepsTheUsefulHalf) {
  struct Row {
    const char* name;
    const char* expected;
  };
  static constexpr Row rows[] = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, "
       "3> "
       ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
       "vectorized_elementwise_kernel CUDAFunctor_add"},
      {"void at::native::elementwise_kernel<128, 2, "
       "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
       "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)>(int)",
       "elementwise_kernel direct_copy_kernel_cuda"},
      {"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
       "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)>>>(float)",
       "reduce_kernel sum_functor"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
       "TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>>(int)",
       "multi_tensor_apply_kernel BinaryOpListAlphaFunctor"},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(Params)",
       "cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1"},
      {"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(Params)",
       "fp8_ptp128c::GemmKernel"},
      {"void dpsk::ep::internode::combine<false, 8, __nv_bfloat16>(int4*, float*)", "internode::combine"},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
      {"Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
      {"", ""},
      {"<<>", "<<>"},
      {"void (", "("}};
  for (const Row& row : rows) EXPECT_EQ(short_kernel_name(row.name), row.expected) << row.name;
  EXPECT_LE(short_kernel_name(std::string(5000, 'k')).size(), 90U);
}

TEST(KernelName, MangledNamesAreDemangled) {
  EXPECT_EQ(demangled("_Z10add_kernelPfi"), "add_kernel(float*, int)");
  EXPECT_EQ(demangled("_Zwhatever"), "_Zwhatever");
  EXPECT_EQ(demangled("sgemm"), "sgemm");
}

}  // namespace
}  // namespace orrery
