#include "sim/generate/served_spec.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

ServedRow row(const std::string& model, const std::string& gpu, const std::string& precision) {
  ServedRow r{.framework = "vllm 0.18", .model = model, .gpu = gpu, .precision = precision};
  r.gpus = r.tensor = 8;
  r.input = r.output = 128;
  return r;
}

WeightFormat weights(const std::string& model, const std::string& gpu, const std::string& precision) {
  return served_spec(row(model, gpu, precision), 4, 2).strategy.weights;
}

TEST(ServedSpec, WeightsHaveTheirCheckpointsGroups) {
  EXPECT_EQ(weights("MiniMaxAI/MiniMax-M2.5", "h200-sxm", "fp8").group, 64);  // 1,536 over 8 ranks
  EXPECT_EQ(weights("deepseek-r1", "h200-sxm", "fp8").group, 128);
  EXPECT_EQ(weights("llama-3.1-70b", "h200-sxm", "fp8").group, kTensorGroup);
  EXPECT_EQ(weights("gpt-oss-120b", "h200-sxm", "fp4").group, 8);  // 2,880 over 8 ranks
  ServedRow said = row("llama-3.1-70b", "h200-sxm", "fp8");
  said.gemm_precision = "fp8_block";
  EXPECT_EQ(served_spec(said, 4, 2).strategy.weights.group, 128);
}

// GPUs of Hopper have no products in 4 bits.
TEST(ServedSpec, FourBitsAreWidenedWhereProductsDoNotHaveThem) {
  const Spec hopper = served_spec(row("deepseek-r1", "h200-sxm", "fp4"), 4, 2);
  EXPECT_EQ(hopper.strategy.precision, Precision::bf16);
  EXPECT_EQ(hopper.strategy.weights.code, WeightCode::nvfp4);
  const Spec blackwell = served_spec(row("deepseek-r1", "b200", "fp4"), 4, 2);
  EXPECT_EQ(blackwell.strategy.precision, Precision::nvfp4);
  EXPECT_EQ(blackwell.strategy.quantised_layers, QuantisedLayers::feed_forward);
}

// Checkpoints in nvfp4 ask for a cache in 8 bits, which every stack follows; those in fp8 do where TensorRT-LLM runs.
TEST(ServedSpec, CachesAreThoseThatCheckpointsAskFor) {
  const auto cache = [](const char* framework, const char* precision) {
    ServedRow said = row("llama-3.1-70b", "b200", precision);
    said.framework = framework;
    return served_spec(said, 4, 2).generation->kv_precision;
  };
  for (const char* framework : {"vllm 0.17.0", "sglang 0.5.9", "trtllm 1.2.0"})
    EXPECT_EQ(cache(framework, "fp4"), Precision::fp8) << framework;
  EXPECT_EQ(cache("vllm 0.17.0", "fp8"), Precision::bf16);
  EXPECT_EQ(cache("trtllm 1.2.0", "fp8"), Precision::fp8);
}

TEST(ServedSpec, GptOssHasExpertsInMxfp4) {
  ServedRow said = row("gpt-oss-120b", "b200", "fp4");
  const auto precision = [&](const char* framework) {
    said.framework = framework;
    const Strategy s = served_spec(said, 4, 2).strategy;
    EXPECT_EQ(s.weights.code, WeightCode::mxfp4);
    EXPECT_EQ(s.quantised_layers, QuantisedLayers::experts);
    return s.precision;
  };
  EXPECT_EQ(precision("trtllm 1.2.0"), Precision::mxfp8);
  EXPECT_EQ(precision("vllm 0.18.0"), Precision::mxfp8);
  EXPECT_EQ(precision("sglang 0.5.9"), Precision::bf16);
}

TEST(ServedSpec, VllmWidensFourBitFloatsWithMarlin) {
  const auto kernels = [](const char* model, const char* gpu, const char* precision, const char* framework) {
    ServedRow said = row(model, gpu, precision);
    said.framework = framework;
    return served_spec(said, 4, 2).software.kernels.expert_kernels;
  };
  EXPECT_EQ(kernels("gpt-oss-120b", "h100-sxm", "fp4", "vllm 0.18.0"), ExpertKernels::marlin);
  EXPECT_EQ(kernels("gpt-oss-120b", "b200", "fp4", "vllm 0.18.0"), ExpertKernels::vllm);
  EXPECT_EQ(kernels("gpt-oss-120b", "a100-sxm-80gb", "fp4", "vllm 0.18.0"), ExpertKernels::vllm);
  EXPECT_EQ(kernels("gpt-oss-120b", "h100-sxm", "fp4", "trtllm 1.2.0"), ExpertKernels::trtllm);
  EXPECT_EQ(kernels("qwen3-235b-a22b", "h100-sxm", "fp8", "vllm 0.18.0"), ExpertKernels::vllm);
}

TEST(ServedSpec, VllmRunsDeepGemmForMiniMaxOnBlackwellBefore018) {
  const auto kernels = [](const char* model, const char* gpu, const char* framework) {
    ServedRow said = row(model, gpu, "fp8");
    said.framework = framework;
    return served_spec(said, 4, 2).software.kernels.expert_kernels;
  };
  EXPECT_EQ(kernels("minimax-m2.5", "b200", "vllm 0.17.0"), ExpertKernels::trtllm);
  EXPECT_EQ(kernels("minimax-m2.5", "b200", "vllm 0.18.0"), ExpertKernels::vllm);
  EXPECT_EQ(kernels("minimax-m2.5", "h200-sxm", "vllm 0.17.0"), ExpertKernels::vllm);
  EXPECT_EQ(kernels("deepseek-r1", "b200", "vllm 0.17.0"), ExpertKernels::vllm);
}

TEST(ServedSpec, ReleasesOfVllmTellItsStack) {
  ServedRow said = row("llama-3.1-8b", "h200-sxm", "fp8");
  const auto stack = [&](const char* framework) {
    said.framework = framework;
    return stack_of(said);
  };
  for (const char* late : {"vllm 0.14.0", "vllm v0.15", "vllm 1.0", "vllm nightly-5b8c"})
    EXPECT_EQ(stack(late), "vllm");
  for (const char* early : {"vllm 0.13.2", "vLLM v0.9", "vllm "}) EXPECT_EQ(stack(early), "vllm-synchronous");
}

TEST(ServedSpec, StacksAreNamedAnywhereInAFramework) {
  ServedRow said = row("llama-3.1-8b", "a100-sxm-80gb", "fp16");
  const auto stack = [&](const char* framework) {
    said.framework = framework;
    return stack_of(said);
  };
  EXPECT_EQ(stack("ROCm vLLM 0.6.6"), "vllm-synchronous");
  EXPECT_EQ(stack("ROCm vLLM 0.18.0"), "vllm");
  EXPECT_EQ(stack("LMDeploy 0.4 (TurboMind)"), "lmdeploy");
  EXPECT_EQ(stack("TinyChat (llm-awq)"), "tinychat");
  said.precision = "int4 weights (AWQ g128)";
  EXPECT_EQ(served_spec(said, 1, 2).strategy.weights.code, WeightCode::int4);
}

TEST(ServedSpec, CachesOfUnknownPrecisionAreRefused) {
  ServedRow said = row("llama-3.1-8b", "h200-sxm", "bf16");
  const auto precision = [&](const char* word) {
    said.cache_precision = word;
    return served_spec(said, 4, 2).generation->kv_precision;
  };
  EXPECT_EQ(precision(""), Precision::bf16);
  EXPECT_EQ(precision("fp8 KV"), Precision::fp8);
  EXPECT_EQ(precision("int8"), Precision::int8);
  EXPECT_EQ(precision("nvfp4"), Precision::nvfp4);
  EXPECT_THROW(precision("int3"), Error);
}

TEST(ServedSpec, UnknownStacksAreRefused) {
  ServedRow other = row("llama-3.1-8b", "h200-sxm", "fp8");
  other.framework = "other 1";
  EXPECT_THROW(served_spec(other, 4, 2), Error);
}

}  // namespace
}  // namespace orrery
