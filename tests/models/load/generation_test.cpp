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
  EXPECT_NE(refusal("{input: 8, batch: 4, kv_precision: nvfp4}", "{}").find("kv_precision"), std::string::npos);
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

}  // namespace
}  // namespace orrery
