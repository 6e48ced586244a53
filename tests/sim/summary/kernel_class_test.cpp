#include "sim/summary/kernel_class.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(KernelClass, NamesOfLibrariesAreKnown) {
  struct Row {
    const char* name;
    KernelClass expected;
  };
  using enum KernelClass;
  static constexpr Row rows[] = {
      {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", gemm},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
       gemm},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", gemm},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_nn_align8>(Params)", gemm},
      {"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(Params)", gemm},
      {"void deep_gemm::fp8_gemm_kernel<2112u, 7168u>(float*)", gemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(Params)", gemm},
      {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN", gemm},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)", attention},
      {"void cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2>>>(Params)", attention},
      {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(Params)", attention},
      {"ck_fused_attn::dkdv_reduce", attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_32_64x128x128", attention},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", collective},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", collective},
      {"void deep_ep::internode::dispatch<false, 8>(int4*)", collective},
      {"void dpsk::ep::internode::combine<false, 8>(int4*)", collective},
      {"void vllm::cross_device_reduce_1stage<__half, 2>(vllm::RankData*)", collective},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", elementwise},
      {"void transformer_engine::cast_transpose_kernel<float>(float const*)", elementwise},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", norm},
      {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<float>(Params)", norm},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)", norm},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, float>>(float)", reduction},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>()",
       optimizer},
      {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>>(int)", optimizer},
      {"triton_red_fused__to_copy_mean_mul_pow_0", triton},
      {"triton_tem_fused_mm_3", gemm},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", convolution},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float>(Params)", convolution},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>(int)", indexing},
      {"void split_embedding_codegen_forward_unweighted_kernel<c10::Half, float>(int)", indexing},
      {"void cub::DeviceRadixSortOnesweepKernel<long>(int*)", indexing},
      {"Memcpy HtoD (Pinned -> Device)", copy},
      {"Memset (Device)", copy},
      {"my_very_own_thing", other}};
  for (const Row& row : rows) EXPECT_EQ(name_of(class_of_kernel(row.name)), name_of(row.expected)) << row.name;
}

TEST(KernelClass, OurOwnTracesSayTheirKind) {
  EXPECT_EQ(class_of_kernel("qkv", "gemm/output bf16"), KernelClass::gemm);
  EXPECT_EQ(class_of_kernel("step", "update/2/master fp32"), KernelClass::optimizer);
  EXPECT_EQ(class_of_kernel("gemm", "norm/rms/forward bf16"), KernelClass::norm);
  EXPECT_EQ(class_of_kernel("add", "add fp32"), KernelClass::elementwise);
}

}  // namespace
}  // namespace orrery
