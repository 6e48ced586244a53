#include "models/layers/generation.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/cost/generation_figures.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec layers_spec(std::string_view model, std::string_view generate, std::string_view strategy, std::int64_t gpus = 4,
                 std::string_view software = "vllm") {
  return parse_spec(fmt::format("{{model: {}, workload: generate, generate: {}, cluster: {{node: dgx-h100, nodes: 2}}, "
                                "gpus: {}, software: {}, strategy: {}}}",
                                model, generate, gpus, software, strategy),
                    "t.yaml");
}

// The floating-point operations of all ranks in a pass.
double flops_of(const Spec& spec) {
  const Plan plan = make_plan(spec);
  double sum = 0;
  for (const RankClass& slot : plan.classes) {
    for (TaskId t = slot.begin; t < slot.end; ++t)
      sum += static_cast<double>(slot.multiplicity) * cost_of(plan.op_of(t).work, plan.element_bytes).flops;
  }
  return sum;
}

double attention_flops(const Spec& spec) {
  const Plan plan = make_plan(spec);
  double sum = 0;
  for (const RankClass& slot : plan.classes) {
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      if (std::holds_alternative<FlashAttention>(plan.op_of(t).work))
        sum += static_cast<double>(slot.multiplicity) * cost_of(plan.op_of(t).work, plan.element_bytes).flops;
    }
  }
  return sum;
}

std::vector<std::string> forward_of_layers(const Spec& spec) {
  const Plan plan = make_plan(spec);
  std::vector<std::string> names;
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    for (const std::uint32_t op : block.forward) names.push_back(plan.ops[op].name);
  }
  return names;
}

TEST(GenerationLayers, RoutersOfSomeModelsMultiplyInFp32) {
  const auto precision = [](const char* fp32) {
    const std::string model = fmt::format("{{base: minimax-m2.5, moe: {{router_fp32: {}}}}}", fp32);
    const Plan plan = make_plan(layers_spec(model, "{batch: 4, input: 512}", "{tensor: 4, precision: fp8}"));
    const auto router = std::ranges::find(plan.ops, std::string("router"), &Op::name);
    return router == plan.ops.end() ? Precision::fp8 : router->precision;
  };
  EXPECT_EQ(precision("true"), Precision::fp32);
  EXPECT_EQ(precision("false"), Precision::bf16) << "products in 8 bits leave the router in 16";
  EXPECT_TRUE(
      parse_spec("{model: minimax-m2.5, sequence: 4096, gpus: 8, cluster: {node: dgx-h100}, strategy: {tensor: 8}}",
                 "t.yaml")
          .model.moe->router_fp32);
}

// Prefill has the ops of a training step's forward, and the copy into the cache.
TEST(GenerationLayers, PrefillIsTheForwardOfTraining) {
  const Spec spec = layers_spec("llama-3.2-1b", "{batch: 2, input: 512}", "{tensor: 4}", 4, "orrery");
  const Spec training = parse_spec(
      "{model: llama-3.2-1b, sequence: 512, cluster: {node: dgx-h100, nodes: 1}, gpus: 4, software: orrery, "
      "strategy: {tensor: 4, sequence_parallel: false, micro_batch: 2, global_batch: 2}}",
      "t.yaml");
  std::vector<std::string> names = forward_of_layers(spec);
  EXPECT_EQ(std::erase(names, "keys and values to the cache"), 1U);
  EXPECT_EQ(names, forward_of_layers(training));
}

// Names of the products of a layer whose inputs a kernel of its own casts.
std::vector<std::string> casts_of(std::string_view software, std::string_view strategy, std::int64_t gpus,
                                  std::string_view model = "llama-3.2-1b") {
  const Plan plan = make_plan(layers_spec(model, "{batch: 2, input: 64}", strategy, gpus, software));
  std::vector<std::string> names;
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    for (const std::uint32_t op : block.forward) {
      const auto* cast = std::get_if<Cast>(&plan.ops[op].work);
      if (cast != nullptr && cast->own_kernel) names.push_back(plan.ops[op].name);
    }
  }
  return names;
}

// Which kernels write inputs of products in 8 bits is a habit of the stack, and only where the tensor has one scale.
TEST(GenerationLayers, CastsAreKernelsWhereNoOtherKernelMakesThem) {
  using Names = std::vector<std::string>;
  const std::string qkv = "qkv input to fp8", out = "attention output input to fp8", up = "mlp up input to fp8",
                    down = "mlp down input to fp8";
  EXPECT_EQ(casts_of("sglang", "{precision: fp8}", 1), (Names{qkv, out, up, down}));
  EXPECT_EQ(casts_of("vllm", "{precision: fp8}", 1), Names{out});
  EXPECT_EQ(casts_of("tensorrt-llm", "{precision: fp8}", 1), (Names{qkv, up}));
  EXPECT_EQ(casts_of("tensorrt-llm", "{precision: fp8, tensor: 2}", 2), Names{});
  EXPECT_EQ(casts_of("tensorrt-llm", "{tensor: 2}", 2), Names{});
  const std::string_view blocks = "{precision: fp8, quantise: {weights: fp8, group: 128}}";
  EXPECT_EQ(casts_of("vllm", blocks, 1), (Names{qkv, out, up, down}));
  const std::string_view outputs = "{precision: fp8, quantise: {weights: fp8, group: channel}}";
  EXPECT_EQ(casts_of("vllm", outputs, 1), Names{out}) << "torch.compile finds the scale of a row";
  EXPECT_EQ(casts_of("tensorrt-llm", outputs, 1), (Names{qkv, out, up, down}));
  EXPECT_EQ(casts_of("tensorrt-llm", "{precision: fp8, tensor: 2}", 2, "{base: llama-3.2-1b, post_norms: true}"),
            (Names{qkv, up}))
      << "the all-reduce ends with the norm after the branch, not with that before the next";
}

// TensorRT-LLM's attention rotates where it reads the cache, and its all-reduces end with the norm that follows: in one
// kernel after prompts, in one call over them.
TEST(GenerationLayers, OtherKernelsDoNormsAndRotations) {
  const auto within = [](std::string_view software, std::int64_t cached, std::int64_t gpus) {
    Spec spec = layers_spec("llama-3.2-1b", "{batch: 2, input: 64, output: 4}", fmt::format("{{tensor: {}}}", gpus),
                            gpus, software);
    spec.generation->cached = cached;
    if (cached > 0) spec.sequence = 1;
    const Plan plan = make_plan(spec);
    std::vector<std::string> names;
    for (const Block& block : plan.blocks) {
      if (block.role != BlockRole::layer) continue;
      for (const std::uint32_t op : block.forward) {
        if (plan.ops[op].within) names.push_back(plan.ops[op].name);
        if (plan.ops[op].same_call) names.push_back(plan.ops[op].name + ": same call");
      }
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(within("tensorrt-llm", 64, 2),
            (Names{"attention norm", "attention norm: same call", "rotary", "mlp norm", "mlp norm: same call"}));
  EXPECT_EQ(within("tensorrt-llm", 64, 1), Names{"rotary"});
  EXPECT_EQ(within("tensorrt-llm", 0, 2), (Names{"attention norm: same call", "mlp norm: same call"}));
  EXPECT_EQ(within("vllm", 64, 2), Names{});
}

// A prompt in chunks has the work of the whole prompt, but for the logits that each chunk ends with.
TEST(GenerationLayers, ChunksAddUpToThePrompt) {
  Spec spec = layers_spec("llama-3.2-1b", "{batch: 1, input: 2048}", "{tensor: 2}", 2);
  const double whole = attention_flops(spec);
  for (const std::int64_t chunk : {256, 512, 1024}) {
    double sum = 0;
    for (std::int64_t cached = 0; cached < 2048; cached += chunk) {
      spec.sequence = chunk;
      spec.generation->cached = cached;
      sum += attention_flops(spec);
    }
    EXPECT_NEAR(sum / whole, 1, 0.001) << chunk;
  }
}

// The work does not depend on how it is cut over ranks.
TEST(GenerationLayers, WorkIsTheSameOverTensorAndPipelineRanks) {
  const auto flops = [](std::string_view strategy, std::int64_t gpus) {
    return flops_of(layers_spec("llama-3.1-8b", "{batch: 8, input: 256, output: 8}", strategy, gpus));
  };
  const double one = flops("{}", 1);
  EXPECT_NEAR(flops("{tensor: 4}", 4) / one, 1, 0.01);
  EXPECT_NEAR(flops("{pipeline: 4}", 4) / one, 1, 0.01);
  EXPECT_NEAR(flops("{data: 4}", 4) / one, 1, 0.01);
}

template <class Work>
std::vector<Work> works_of(const Spec& spec) {
  std::vector<Work> list;
  const Plan plan = make_plan(spec);
  for (const Op& op : plan.ops)
    if (const auto* work = std::get_if<Work>(&op.work)) list.push_back(*work);
  return list;
}

// A token's update of a state: three products with it (six operations an element), and the state read and written in
// fp32 beside the token's own vectors.
TEST(GenerationLayers, ATokenUpdatesEachStateOnce) {
  Spec spec =
      layers_spec("{base: qwen3.5-397b-a17b, layers: 4}", "{batch: 8, input: 512, output: 8}", "{tensor: 2}", 2);
  const Scan prompt = works_of<Scan>(spec).at(0);
  EXPECT_TRUE(prompt.keeps && !prompt.resumes && !prompt.steps());
  spec.sequence = 1;
  spec.generation->cached = 512;
  const Scan token = works_of<Scan>(spec).at(0);
  ASSERT_TRUE(token.steps());
  const Cost cost = cost_of(token, 2);
  const double state = 8.0 * 32 * 128 * 128, vectors = 8.0 * (2 * 8 + 2 * 32) * 128;
  EXPECT_EQ(cost.flops, 6 * state);
  EXPECT_EQ(cost.bytes, 2 * 4 * state + 2 * vectors);
  EXPECT_EQ(kernels_of(Work(token)), 1);
  spec.generation->cached = 4096;
  EXPECT_EQ(cost_of(works_of<Scan>(spec).at(0), 2).bytes, cost.bytes);
}

// An index scores every pair of a token and one before it, however the prompt is cut; attention sees at most top_k.
TEST(GenerationLayers, AnIndexScoresAllAndAttentionSeesTheChosen) {
  Spec spec =
      layers_spec("{base: glm-5, layers: 4}", "{batch: 2, input: 8192, output: 8}", "{tensor: 8, precision: fp8}", 8);
  const auto flops = [](const auto& list) { return cost_of(list.at(0), 2).flops; };
  const double scores = flops(works_of<IndexScores>(spec)), attention = flops(works_of<FlashAttention>(spec));
  double scores_of_chunks = 0, attention_of_chunks = 0;
  spec.sequence = 1024;
  for (spec.generation->cached = 0; spec.generation->cached < 8192; spec.generation->cached += 1024) {
    scores_of_chunks += flops(works_of<IndexScores>(spec));
    attention_of_chunks += flops(works_of<FlashAttention>(spec));
  }
  EXPECT_NEAR(scores_of_chunks / scores, 1, 0.001);
  EXPECT_NEAR(attention_of_chunks / attention, 1, 0.001);
  spec.sequence = 1;
  const FlashAttention token = works_of<FlashAttention>(spec).at(0);
  EXPECT_EQ(cost_of(token, 2).flops, 2.0 * 2 * 8 * 2048 * (576 + 512));
  EXPECT_EQ(cache_bytes(token), 2.0 * 2048 * 576 * 2);
  const IndexScores index = works_of<IndexScores>(spec).at(0);
  EXPECT_EQ(cost_of(index, 2).flops, 2.0 * 8193 * 32 * (2 * 128 + 3));
}

// Scores are held while tokens are chosen: 4 bytes a pair of a token and one before it, 512 MiB at most.
TEST(GenerationLayers, ScoresOfAnIndexAreHeldInParts) {
  const auto held = [](std::int64_t input, std::int64_t chunk) {
    Spec spec = layers_spec("{base: glm-5, layers: 4}", fmt::format("{{batch: 2, input: {}, output: 8}}", input),
                            "{tensor: 8, precision: fp8}", 8);
    spec.sequence = chunk;
    spec.generation->cached = input - chunk;
    Bytes most = 0;
    for (const Block& block : make_plan(spec).blocks) {
      for (const BlockBuffer& buffer : block.buffers)
        if (buffer.name == "index scores") most = std::max(most, buffer.bytes);
    }
    return most;
  };
  EXPECT_EQ(held(4096, 1024), 2 * 1024 * 4096 * 4);
  EXPECT_EQ(held(131072, 8192), Bytes{512} << 20);
}

// Early TensorRT-LLM kernels that read the cache once for 8 query heads are for heads of 128 columns: Mistral has 4
// query heads for a key head, Falcon heads of 64. Prompts have other kernels.
TEST(GenerationLayers, QueryHeadsReadTheCacheApartWithoutAKernelForTheirGroup) {
  const auto on_cuda_cores = [](std::string_view model, std::int64_t cached, std::string_view software) {
    Spec spec = layers_spec(model, "{batch: 4, input: 128, output: 8}", "{tensor: 4}", 4, software);
    spec.generation->cached = cached;
    spec.sequence = cached > 0 ? 1 : 128;
    const Plan plan = make_plan(spec);
    bool found = false;
    for (const Op& op : plan.ops) {
      if (const auto* a = std::get_if<FlashAttention>(&op.work)) found |= a->on_cuda_cores;
    }
    return found;
  };
  EXPECT_TRUE(on_cuda_cores("mistral-7b-v0.3", 128, "tensorrt-llm-0.9"));
  EXPECT_TRUE(on_cuda_cores("falcon-180b", 128, "tensorrt-llm-0.9"));
  EXPECT_FALSE(on_cuda_cores("llama-2-70b", 128, "tensorrt-llm-0.9"));
  EXPECT_FALSE(on_cuda_cores("llama-2-7b", 128, "tensorrt-llm-0.9")) << "each key head has one query head";
  EXPECT_FALSE(on_cuda_cores("mistral-7b-v0.3", 0, "tensorrt-llm-0.9")) << "a prompt";
  EXPECT_FALSE(on_cuda_cores("mistral-7b-v0.3", 128, "tensorrt-llm"));
}

// Experts that a pass of 16 tokens reads: as many as are met where all are chosen alike, fewer where some are
// preferred.
TEST(GenerationLayers, FewTokensMeetFewExperts) {
  const auto met = [](const std::string& model) {
    const Plan plan = make_plan(layers_spec(model, "{batch: 16, input: 1, output: 1}", "{}", 1));
    for (const Op& op : plan.ops)
      if (const auto* g = std::get_if<GroupedGemm>(&op.work)) return g->groups;
    return std::int64_t{0};
  };
  const auto chosen = [&](double zipf) {
    return met(fmt::format("{{base: qwen3-30b-a3b, moe: {{imbalance: {{zipf: {}}}}}}}", zipf));
  };
  EXPECT_EQ(chosen(0), std::llround(128 * (1 - std::pow(1 - 8.0 / 128, 16))));
  EXPECT_EQ(met("{base: qwen3-30b-a3b, moe: {imbalance: 1}}"), chosen(0));
  EXPECT_LT(chosen(0.9), chosen(0));
  EXPECT_LT(chosen(1.5), chosen(0.9));
  EXPECT_EQ(met("qwen3-30b-a3b"), chosen(generation_figures().expert_zipf));
}

}  // namespace
}  // namespace orrery
