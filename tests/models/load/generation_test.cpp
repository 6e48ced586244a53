#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec keys_spec(std::string_view model, std::string_view generate, std::string_view strategy, std::int64_t gpus = 4,
               std::string_view software = "vllm") {
  return parse_spec(fmt::format("{{model: {}, workload: generate, generate: {}, cluster: {{node: dgx-h100, nodes: 2}}, "
                                "gpus: {}, software: {}, strategy: {}}}",
                                model, generate, gpus, software, strategy),
                    "t.yaml");
}

TEST(GenerationKeys, RefusesWhatItCannotSay) {
  const auto refusal = [](std::string_view generate, std::string_view strategy) {
    try {
      const Spec spec = keys_spec("llama-3.2-1b", generate, strategy);
      make_plan(spec);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("{output: 4}", "{}").find("generate.input: missing"), std::string::npos);
  EXPECT_NE(refusal("{input: 0}", "{}").find("generate.input: 0"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 3}", "{data: 4}").find("generate.batch: 3"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 1}", "{}").find("data: 4; set gpus, strategy.tensor or the batch"),
            std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 4, kv_precision: mxfp4}", "{}").find("kv_precision"), std::string::npos);
  EXPECT_NE(refusal("{input: 8, batch: 4}", "{data: 4, sharding: zero1}").find("shards of the states"),
            std::string::npos);
  EXPECT_NE(refusal("{input: 64, batch: 4}", "{context: 2}").find("context"), std::string::npos);
  EXPECT_NE(refusal("{input: 64, batch: 4}", "{global_batch: 8}").find("global_batch: 8"), std::string::npos);
  EXPECT_EQ(refusal("{input: 64, batch: 4}", "{tensor: 2}"), "");
}

TEST(GenerationKeys, FollowFromEachOther) {
  const Spec spec = keys_spec("llama-3.2-1b", "{input: 512, batch: 8, chunk: 128}", "{pipeline: 2, data: 2}");
  EXPECT_EQ(spec.sequence, 128);
  EXPECT_EQ(spec.strategy.micro_batch, 2);
  EXPECT_EQ(spec.strategy.global_batch, 8);
  EXPECT_EQ(spec.generation->kv_precision, Precision::bf16);
  const std::string text =
      "{model: llama-3.2-1b, sequence: 256, workload: generate, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}";
  EXPECT_EQ(parse_spec(text, "t.yaml").generation->input, 256);
  EXPECT_THROW(parse_spec(text, "t.yaml", {"generate.input=128"}), Error);
  EXPECT_THROW(parse_spec(text, "t.yaml", {"workload=train", "generate.input=256"}), Error);
}

TEST(GenerationKeys, NameWhatProposedTokensNeed) {
  const auto refusal = [](std::string_view model, std::string_view generate) {
    try {
      keys_spec(model, generate, "{}");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(refusal("deepseek-v3", "{input: 64, batch: 4, drafts: 2}"), "generate.acceptance is missing"));
  EXPECT_EQ(refusal("deepseek-v3", "{input: 64, batch: 4, drafts: 0, acceptance: 0.5}"), "") << "to vary drafts";
  EXPECT_TRUE(has(refusal("deepseek-v3", "{input: 64, batch: 4, drafts: 2, acceptance: 1.5}"), "not between 0 and 1"));
  EXPECT_TRUE(has(refusal("deepseek-v3", "{input: 64, batch: 4, drafts: 99, acceptance: 0.5}"), "between 0 and 64"));
  EXPECT_TRUE(has(refusal("llama-3.2-1b", "{input: 64, batch: 4, drafts: 2, acceptance: 0.5}"), "has no module"));
  EXPECT_EQ(refusal("deepseek-v3", "{input: 64, batch: 4, drafts: 2, acceptance: 0.5}"), "");
}

TEST(GenerationKeys, TakeTheLaunchTimeOfTheGpu) {
  const auto launch_us = [](std::string_view node, std::string_view software) {
    return parse_spec(fmt::format("{{model: llama-3.2-1b, workload: generate, generate: {{input: 64, batch: 4}}, "
                                  "cluster: {{node: {}, nodes: 1}}, gpus: 1, software: {}}}",
                                  node, software),
                      "t.yaml")
        .software.host.launch_us;
  };
  EXPECT_LT(launch_us("dgx-b200", "tensorrt-llm"), launch_us("dgx-h100", "tensorrt-llm"));
  EXPECT_EQ(launch_us("dgx-b200", "{profile: tensorrt-llm, launch_us: 9}"), 9);
  const Spec stated = parse_spec(
      "{model: llama-3.2-1b, workload: generate, generate: {input: 64, batch: 4}, cluster: {node: dgx-b200, nodes: 1}, "
      "gpus: 1, software: {profile: tensorrt-llm, collective_launch_us: 7}}",
      "t.yaml");
  EXPECT_EQ(stated.software.host.collective_launch_us, 7);
  EXPECT_EQ(launch_us("dgx-b200", "vllm"), launch_us("dgx-h100", "vllm"));
}

// A batch that the stages do not divide was one micro-batch.
TEST(GenerationKeys, ABatchHasAsManyMicroBatchesAsDivideIt) {
  const auto micro_batch = [](std::int64_t batch) {
    return keys_spec("llama-3.1-8b", fmt::format("{{input: 64, batch: {}}}", batch), "{pipeline: 8, data: 1}", 8)
        .strategy.micro_batch;
  };
  EXPECT_EQ(micro_batch(64), 8);
  EXPECT_EQ(micro_batch(63), 9);
  EXPECT_EQ(micro_batch(231), 33);
  EXPECT_EQ(micro_batch(61), 61);
  EXPECT_EQ(micro_batch(5), 1);
}

}  // namespace
}  // namespace orrery
