#include "sim/generate/generate.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

// Prefill has the ops of a training step's forward, and the copy into the cache.
TEST(Generation, PrefillIsTheForwardOfTraining) {
  const Spec spec = generation("llama-3.2-1b", "{batch: 2, input: 512}", "{tensor: 4}", 4, "orrery");
  const Spec training = parse_spec(
      "{model: llama-3.2-1b, sequence: 512, cluster: {node: dgx-h100, nodes: 1}, gpus: 4, software: orrery, "
      "strategy: {tensor: 4, sequence_parallel: false, micro_batch: 2, global_batch: 2}}",
      "t.yaml");
  std::vector<std::string> names = forward_of_layers(spec);
  EXPECT_EQ(std::erase(names, "keys and values to the cache"), 1U);
  EXPECT_EQ(names, forward_of_layers(training));
}

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

// A prompt in chunks has the work of the whole prompt, but for the logits that each chunk ends with.
TEST(Generation, ChunksAddUpToThePrompt) {
  Spec spec = generation("llama-3.2-1b", "{batch: 1, input: 2048}", "{tensor: 2}", 2);
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

// The work does not depend on how it is cut over ranks.
TEST(Generation, WorkIsTheSameOverTensorAndPipelineRanks) {
  const auto flops = [](std::string_view strategy, std::int64_t gpus) {
    return flops_of(generation("llama-3.1-8b", "{batch: 8, input: 256, output: 8}", strategy, gpus));
  };
  const double one = flops("{}", 1);
  EXPECT_NEAR(flops("{tensor: 4}", 4) / one, 1, 0.01);
  EXPECT_NEAR(flops("{pipeline: 4}", 4) / one, 1, 0.01);
  EXPECT_NEAR(flops("{data: 4}", 4) / one, 1, 0.01);
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

// The largest batch fits, and one more sequence does not.
TEST(Generation, LargestBatchIsTheLastThatFits) {
  const auto fits = [](std::int64_t batch) {
    const GenerationReport r = predicted(
        generation("llama-3.1-8b", fmt::format("{{batch: {}, input: 2048, output: 64, chunk: 64}}", batch), "{}", 1));
    return std::pair(r.memory.fits(), r.largest_batch);
  };
  const std::int64_t largest = fits(64).second;
  EXPECT_GT(largest, 100);
  EXPECT_FALSE(fits(2 * largest).first);
  EXPECT_TRUE(fits(largest / 2).first);
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

TEST(Generation, JsonHasTheFigures) {
  const Spec spec = generation("llama-3.1-8b", "{batch: 8, input: 512, output: 64, chunk: 256}", "{tensor: 4}");
  const GenerationReport report = predicted(spec);
  const nlohmann::json root = nlohmann::json::parse(to_json(spec, report));
  EXPECT_EQ(root.at("schema"), "orrery.generation/1");
  EXPECT_EQ(root.at("prefill").size(), 2U);
  EXPECT_EQ(root.at("decode").size(), 3U);
  EXPECT_DOUBLE_EQ(root.at("tpot_s"), report.token_s);
  EXPECT_EQ(root.at("memory").at("cache_bytes"), 8 * root.at("memory").at("cache_bytes_per_sequence").get<Bytes>());
  const std::string text = generation_text(spec, report, {});
  for (const char* part : {"first token", "each further token", "largest batch", "prefill, last", "decode, middle"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Generation, RefusesWhatItCannotSay) {
  const auto refusal = [](std::string_view generate, std::string_view strategy) {
    try {
      const Spec spec = generation("llama-3.2-1b", generate, strategy);
      make_plan(spec);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("{output: 4}", "{}").find("generate.input: missing"), std::string::npos);
  EXPECT_NE(refusal("{input: 0}", "{}").find("generate.input: 0"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 3}", "{data: 4}").find("generate.batch: 3"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 4, kv_precision: nvfp4}", "{}").find("kv_precision"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 4}", "{sharding: zero1}").find("sharding"), std::string::npos);
  EXPECT_NE(refusal("{input: 64, batch: 4}", "{context: 2}").find("context"), std::string::npos);
  EXPECT_EQ(refusal("{input: 64, batch: 4}", "{tensor: 2}"), "");
}

}  // namespace
}  // namespace orrery
