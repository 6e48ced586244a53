#include "sim/generate/generate.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/generation/generation_plan.h"
#include "models/layers/blocks.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec generation(std::string_view model, std::string_view generate, std::string_view strategy, std::int64_t gpus = 4,
                std::string_view software = "vllm") {
  return parse_spec(fmt::format("{{model: {}, workload: generate, generate: {}, cluster: {{node: dgx-h100, nodes: 2}}, "
                                "gpus: {}, software: {}, strategy: {}}}",
                                model, generate, gpus, software, strategy),
                    "t.yaml");
}

GenerationReport predicted(const Spec& spec) { return predict_generation(spec, profile_for(spec, "")); }

// 2 L max(g / t, 1) d w bytes a token.
TEST(Generation, CacheHoldsKeysAndValuesOfEveryToken) {
  for (const std::int64_t tensor : {1, 2, 4, 8}) {
    const Spec spec = generation("llama-3.1-8b", "{batch: 8, input: 1000, output: 24, kv_block: 16}",
                                 fmt::format("{{tensor: {}}}", tensor), tensor);
    EXPECT_EQ(predicted(spec).memory.cache_a_sequence, 2 * 32 * (8 / tensor) * 128 * 2 * 1024);
  }
  const Spec narrow = generation("llama-3.1-8b", "{batch: 8, input: 1000, output: 24, kv_precision: fp8}", "{}", 1);
  EXPECT_EQ(predicted(narrow).memory.cache_a_sequence, 2 * 32 * 8 * 128 * 1024);
  // Latent attention: the compressed vector and the rotary part of the key, whole on every tensor rank.
  const Spec latent =
      generation("deepseek-v3", "{batch: 8, input: 1000, output: 24}", "{tensor: 8, precision: fp8}", 8);
  EXPECT_EQ(predicted(latent).memory.cache_a_sequence, 61 * (512 + 64) * 2 * 1024);
}

// 6 of 8 layers keep states of 64 heads of 128 x 128 in fp32, and 3 inputs of (2 x 16 + 64) x 128 columns, however long
// a text is; the other 2 have keys and values of 2 heads of 256, of which each of 4 ranks holds one.
TEST(Generation, RecurrentStatesDoNotGrowWithTheText) {
  const auto memory = [](std::int64_t input, std::int64_t batch) {
    return predicted(generation("{base: qwen3.5-397b-a17b, layers: 8}",
                                fmt::format("{{batch: {}, input: {}, output: 24, kv_block: 8}}", batch, input),
                                "{tensor: 4}", 4));
  };
  const GenerationReport brief = memory(1000, 8), lengthy = memory(8168, 8), more = memory(1000, 64);
  const Bytes states = 6 * (16 * 128 * 128 * 4 + 3 * (2 * 4 + 16) * 128 * 2);
  for (const GenerationReport* r : {&brief, &lengthy, &more}) EXPECT_EQ(r->memory.states_a_sequence, states);
  EXPECT_EQ(more.memory.states, 64 * states);
  EXPECT_EQ(lengthy.memory.cache_a_sequence, 8 * brief.memory.cache_a_sequence);
  EXPECT_EQ(brief.memory.cache_a_sequence, 2 * 2 * 1 * 256 * 2 * 1024);
  // A further sequence takes room for both.
  const GeneratedMemory& m = brief.memory;
  EXPECT_EQ(m.sequences_within(m.sum() + 2 * m.a_sequence()), 10);
  EXPECT_EQ(m.sequences_within(m.sum() + 2 * m.a_sequence() - 1), 9);
  EXPECT_LT(brief.largest_batch * m.a_sequence(), m.allowed - m.weights);
}

TEST(Generation, WeightsAreAsWideAsTheirProducts) {
  const auto weights = [](std::string_view precision) {
    return static_cast<double>(predicted(generation("llama-3.1-70b", "{batch: 8, input: 128, output: 8}",
                                                    fmt::format("{{tensor: 8, precision: {}}}", precision), 8))
                                   .memory.weights);
  };
  EXPECT_NEAR(weights("bf16"), 70.554e9 * 2 / 8, 1e8);
  const double ends = 2 * 128256 * 8192.0;  // the embedding and the output stay in 16 bits
  EXPECT_NEAR(weights("fp8"), (70.554e9 + ends) / 8, 1e8);
}

// A pass reads the weights and the cache at least once: step >= (weights + cache) / bandwidth. Embeddings are looked
// up.
TEST(Generation, PassIsNotFasterThanItsBytes) {
  for (const std::string_view model : {"llama-3.1-8b", "llama-3.1-70b", "qwen3-32b"}) {
    const Spec spec = generation(model, "{batch: 64, input: 4096, output: 512}", "{tensor: 8}", 8);
    const GenerationReport report = predicted(spec);
    const double table = static_cast<double>(spec.model.vocab * spec.model.hidden * 2) / 8;
    const double bytes = static_cast<double>(report.memory.weights) - table +
                         static_cast<double>(report.memory.cache_a_sequence * 64) * 4096 / (4096 + 512);
    EXPECT_GT(report.decode.front().period_s, bytes / 3.35e12) << model;
    EXPECT_LT(report.decode.front().period_s, 3 * bytes / 3.35e12 + 0.004) << model;
    EXPECT_LE(report.bandwidth_share, 1);
  }
}

TEST(Generation, TimesGrowWithContextAndBatch) {
  const auto report = [](std::int64_t batch, std::int64_t input) {
    return predicted(
        generation("llama-3.1-8b", fmt::format("{{batch: {}, input: {}, output: 64}}", batch, input), "{}", 1));
  };
  EXPECT_LT(report(8, 1024).token_s, report(64, 1024).token_s);
  EXPECT_LT(report(64, 1024).token_s, report(64, 8192).token_s);
  EXPECT_LT(report(1, 1024).first_token_s, report(1, 4096).first_token_s);
  const GenerationReport r = report(64, 1024);
  EXPECT_LE(r.decode[0].period_s, r.decode[1].period_s);
  EXPECT_LE(r.decode[1].period_s, r.decode[2].period_s);
  EXPECT_DOUBLE_EQ(r.total_s, r.first_token_s + 63 * r.token_s);
}

// A pass of one token is a CUDA graph. A pass over prompts is launched op by op: by Python in 70 us each, which a short
// prompt waits for, and a long one does not.
TEST(Generation, ShortPromptsWaitForTheirLaunches) {
  const auto of = [](std::int64_t input, double launch_us) {
    Spec spec = generation("llama-3.1-8b", fmt::format("{{batch: 1, input: {}, output: 2}}", input), "{}", 1);
    EXPECT_EQ(spec.software.host.launch_us, 70);
    spec.software.host.launch_us = launch_us;
    return predicted(spec);
  };
  const GenerationReport slow = of(64, 70), fast = of(64, 4), lengthy = of(16384, 70), at_once = of(16384, 4);
  EXPECT_NEAR(slow.first_token_s, 70e-6 * 9 * 32, 0.15 * slow.first_token_s) << "about nine ops a layer";
  EXPECT_LT(fast.first_token_s, 0.5 * slow.first_token_s);
  EXPECT_DOUBLE_EQ(slow.token_s, fast.token_s);
  EXPECT_NEAR(lengthy.first_token_s, at_once.first_token_s, 0.01 * at_once.first_token_s);
  const Spec spec = generation("llama-3.1-8b", "{batch: 1, input: 64, output: 2}", "{}", 1);
  const PromptTime apart = prompt_time(spec, profile_for(spec, ""));
  EXPECT_NEAR(apart.launch_s, slow.first_token_s, 0.03 * slow.first_token_s);
  EXPECT_LT(apart.device_s, fast.first_token_s);
}

// The largest batch fits, and the next one does not, however large the batch is that the spec asks for: also where
// working memory, which grows with the batch, takes as much as the cache.
TEST(Generation, LargestBatchIsTheLastThatFits) {
  struct Case {
    const char *model, *generate, *strategy;
    std::int64_t gpus, next;
  };
  for (const Case& c : {Case{"llama-3.1-8b", "input: 2048, output: 64, chunk: 64", "{}", 1, 1},
                        Case{"mixtral-8x7b", "input: 512, output: 64", "{tensor: 4, data: 2}", 8, 2},
                        Case{"llama-3.1-8b", "input: 128, output: 64", "{pipeline: 2}", 2, 2}}) {
    const auto at = [&](std::int64_t batch) {
      return generation(c.model, fmt::format("{{batch: {}, {}}}", batch, c.generate), c.strategy, c.gpus);
    };
    const auto fits = [&](std::int64_t batch) {
      const Spec spec = at(batch);
      return generation_memory(spec, profile_for(spec, "")).fits();
    };
    const std::int64_t largest = predicted(at(8)).largest_batch;
    EXPECT_GT(largest, 100) << c.model;
    EXPECT_TRUE(fits(largest)) << c.model;
    EXPECT_FALSE(fits(largest + c.next)) << c.model;
    EXPECT_EQ(predicted(at(2 * largest)).largest_batch, largest) << c.model;
  }
}

// Weights of experts that no token chose are not read, nor are tables of embeddings.
TEST(Generation, ReadsAtMostTheBandwidth) {
  for (const std::int64_t batch : {2, 64}) {
    const GenerationReport r = predicted(generation(
        "mixtral-8x7b", fmt::format("{{batch: {}, input: 512, output: 64}}", batch), "{tensor: 4, data: 2}", 8));
    EXPECT_LT(r.bandwidth_share, 1) << batch;
    EXPECT_GT(r.bandwidth_share, 0.25) << batch;
    EXPECT_LT(r.decode[1].reads.weights, static_cast<double>(r.memory.weights)) << batch;
  }
}

// Experts over ranks of data parallelism read about what experts over as many tensor ranks read, from as many tokens.
TEST(Generation, FewTokensReadFewExpertsOfAnyLayout) {
  const auto report = [](const std::string& strategy) {
    return predicted(generation("qwen3-30b-a3b", "{batch: 8, input: 128, output: 8}", strategy, 8));
  };
  const GenerationReport data = report("{data: 8, expert: 8}"), tensor = report("{tensor: 8, expert: 8}");
  EXPECT_LT(data.decode[1].reads.weights, 2.5 * tensor.decode[1].reads.weights);  // attention is whole on each rank
  EXPECT_LT(data.decode[1].reads.weights, 0.6 * static_cast<double>(data.memory.weights));
}

// With few tokens most experts are not chosen, and their weights are not read.
TEST(Generation, FewTokensReadFewExperts) {
  const auto token_s = [](std::int64_t batch) {
    return predicted(
               generation("mixtral-8x7b", fmt::format("{{batch: {}, input: 128, output: 8}}", batch), "{tensor: 4}", 4))
        .token_s;
  };
  EXPECT_LT(token_s(1), 0.6 * token_s(64));
}

// Bytes of the layers' matrices of Llama 3.1 8B on one GPU by their format; embedding, output and norms stay in 16
// bits.
TEST(Generation, WeightsTakeTheBytesOfTheirFormat) {
  const auto weights = [](std::string_view quantise) {
    return predicted(generation("llama-3.1-8b", "{batch: 8, input: 128, output: 8}",
                                fmt::format("{{quantise: {}}}", quantise), 1))
        .memory.weights;
  };
  const std::int64_t outputs = 6144 + 4096 + 2 * 14336 + 4096;  // of the four matrices of a layer
  const std::int64_t n = std::int64_t{6144 + 4096 + 3 * 14336} * 4096, layers = 32;
  const Bytes others = weights("{}") - 2 * layers * n;
  EXPECT_EQ(weights("{weights: fp8}"), others + layers * (n + 4 * 4));
  EXPECT_EQ(weights("{weights: int8}"), others + layers * (n + 4 * outputs));
  EXPECT_EQ(weights("{weights: int4, group: 64}"), others + layers * (n / 2 + 2 * n / 64));
  EXPECT_EQ(weights("{weights: awq}"), others + layers * (n / 2 + 2 * n / 128 + n / 128 / 2));
  EXPECT_EQ(weights("{weights: nvfp4}"), others + layers * (n / 2 + n / 16 + 4 * 4));
  EXPECT_EQ(weights("{weights: mxfp4}"), others + layers * (n / 2 + n / 32));
  const std::int64_t mlp = std::int64_t{3 * 14336} * 4096, attention = n - mlp;
  EXPECT_EQ(weights("{weights: mxfp4, layers: feed_forward}"), others + layers * (2 * attention + mlp / 2 + mlp / 32));
}

// The products of matrices that quantise.layers leaves out run in 16 bits, and nothing is cast for them.
TEST(Generation, LayersThatAreLeftOutStayWide) {
  const auto plan_of = [](std::string_view layers) {
    const Spec spec = parse_spec(
        fmt::format(
            "{{model: gpt-oss-120b, workload: generate, generate: {{batch: 8, input: 128, output: 8}}, cluster: "
            "{{gpu: b200, gpus_per_node: 8, nodes: 1}}, gpus: 1, software: vllm, strategy: {{precision: mxfp8, "
            "quantise: {{weights: mxfp4, layers: {}}}}}}}",
            layers),
        "t.yaml");
    return make_generation_plan(spec, {{.tokens = 1, .cached = 128}}, false);
  };
  const auto precision = [](const Plan& plan, std::string_view name) {
    return std::ranges::find(plan.ops, name, &Op::name)->precision;
  };
  const auto casts = [](const Plan& plan) {
    return std::ranges::count_if(plan.ops, [](const Op& op) { return op.name.ends_with("input to fp8"); });
  };
  const Plan all = plan_of("all"), experts = plan_of("experts");
  EXPECT_EQ(precision(all, "qkv"), Precision::mxfp8);
  EXPECT_EQ(precision(experts, "qkv"), Precision::bf16);
  EXPECT_EQ(precision(experts, "experts.up"), Precision::mxfp8);
  EXPECT_EQ(precision(experts, "attention output"), Precision::bf16);
  EXPECT_EQ(precision(all, "router"), Precision::bf16);
  EXPECT_EQ(precision(experts, "router"), Precision::bf16);
  EXPECT_EQ(casts(all), 2 * casts(experts));  // of the inputs of four products of a layer, and of two
}

// So it is where experts lie on ranks of data parallelism, and with attention alone left out.
TEST(Generation, AttentionMayStayWide) {
  const Spec spec = parse_spec(
      "{model: deepseek-v3, workload: generate, generate: {batch: 8, input: 128, output: 8}, cluster: {gpu: b200, "
      "gpus_per_node: 8, nodes: 1}, gpus: 4, software: tensorrt-llm, strategy: {data: 4, expert: 4, expert_tensor: 1, "
      "precision: nvfp4, quantise: {layers: feed_forward}}}",
      "t.yaml");
  const Plan plan = make_generation_plan(spec, {{.tokens = 1, .cached = 128}}, false);
  const auto precision = [&](std::string_view name) {
    const auto op = std::ranges::find(plan.ops, name, &Op::name);
    return op == plan.ops.end() ? Precision::fp32 : op->precision;
  };
  for (const char* wide : {"query down", "attention output", "router"})
    EXPECT_EQ(precision(wide), Precision::bf16) << wide;
  for (const char* narrow : {"experts up", "shared experts up", "mlp up"})
    EXPECT_EQ(precision(narrow), Precision::nvfp4) << narrow;
}

// Codes of whole numbers have a scale and a zero point for each head's key and value.
TEST(Generation, CacheOfWholeNumbersHasScales) {
  const auto cache = [](std::string_view precision) {
    return predicted(generation("llama-3.1-8b",
                                fmt::format("{{batch: 8, input: 1000, output: 24, kv_precision: {}}}", precision), "{}",
                                1))
        .memory.cache_a_sequence;
  };
  EXPECT_EQ(cache("int8"), 2 * 32 * 8 * (128 + 4) * 1024);
  EXPECT_EQ(cache("int4"), 2 * 32 * 8 * (64 + 4) * 1024);
  EXPECT_EQ(cache("nvfp4"), 2 * 32 * 8 * (64 + 8) * 1024);
}

// A pass of narrow weights and cache is not faster than its bytes, and of a single sequence about as much faster as
// they are fewer; with many rows, products that widen weights take longer than those that need not.
TEST(Generation, NarrowWeightsAreReadAsTheyAreStored) {
  const auto report = [](std::string_view strategy, std::int64_t batch) {
    return predicted(generation("llama-3.1-70b",
                                fmt::format("{{batch: {}, input: 2048, output: 64, kv_precision: int8}}", batch),
                                strategy, 8));
  };
  const GenerationReport wide = report("{tensor: 8}", 1);
  for (const std::string_view format : {"fp8", "int8", "int4", "nvfp4", "spqr"}) {
    const GenerationReport r = report(fmt::format("{{tensor: 8, quantise: {{weights: {}}}}}", format), 1);
    EXPECT_GE(r.decode[1].period_s, r.decode[1].reads.sum() / 3.35e12) << format;
    EXPECT_LT(r.decode[1].reads.weights, 0.6 * wide.decode[1].reads.weights) << format;
    EXPECT_LT(r.token_s, wide.token_s) << format;
    EXPECT_GT(r.largest_batch, wide.largest_batch) << format;
  }
  const double prompts = report("{tensor: 8}", 16).first_token_s;
  EXPECT_GT(report("{tensor: 8, quantise: {weights: int4}}", 16).first_token_s, prompts);
  EXPECT_LT(report("{tensor: 8, quantise: {weights: fp8, activations: fp8}}", 16).first_token_s, prompts);
}

// A product of one row that widens its weights takes little longer than reading them.
TEST(Generation, FewRowsWaitForNarrowWeightsAlone) {
  const auto token_s = [](std::string_view quantise) {
    const Spec spec = parse_spec(
        fmt::format(
            "{{model: llama-2-7b, workload: generate, generate: {{batch: 1, input: 256, output: 256}}, cluster: "
            "{{gpu: a100-sxm-80gb, gpus_per_node: 1}}, gpus: 1, software: vllm, strategy: {{precision: fp16, "
            "quantise: {}}}}}",
            quantise),
        "t.yaml");
    return predict_batch(spec, profile_for(spec, "")).token_s;
  };
  EXPECT_GT(token_s("{}") / token_s("{weights: awq}"), 1.6);
}

Spec proposing(std::int64_t layers, std::string_view drafts) {
  return generation(fmt::format("{{base: deepseek-v3, layers: {}}}", layers),
                    fmt::format("{{batch: 8, input: 1000, output: 24{}}}", drafts), "{tensor: 8, precision: fp8}", 8);
}

// A pass whose tokens are all rejected yields one and costs more than a plain pass; where all are accepted it yields as
// many as it checks in the same time.
TEST(Generation, PassesCheckProposedTokens) {
  const GenerationReport plain = predicted(proposing(8, ""));
  const GenerationReport none = predicted(proposing(8, ", drafts: 3, acceptance: 0"));
  const GenerationReport all = predicted(proposing(8, ", drafts: 3, acceptance: 1"));
  EXPECT_GT(none.token_s, plain.token_s);
  EXPECT_NEAR(none.token_s, 4 * all.token_s, 1e-12);
  EXPECT_LT(all.token_s, plain.token_s);
  EXPECT_EQ(all.decode.front().tokens, 4);
  EXPECT_GT(all.decode.front().limits.drafts, 0);
  double sum = 0;
  for_limits(all.decode.front().limits, [&](const char*, double share) { sum += share; });
  EXPECT_NEAR(sum, 1, 1e-9);
}

// The module is in memory, and prompts pass through it, as through a further layer.
TEST(Generation, ModulesTakeTheRoomOfALayer) {
  const GenerationReport proposes = predicted(proposing(8, ", drafts: 1, acceptance: 0.8"));
  const GenerationReport further = predicted(proposing(9, ""));
  EXPECT_EQ(proposes.memory.sum(), further.memory.sum());
  EXPECT_EQ(proposes.first_token_s, further.first_token_s);
}

}  // namespace
}  // namespace orrery
