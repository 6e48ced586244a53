#include "models/load/aliases.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/base/data.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

constexpr const char* kOwn =
    "model: llama-3.1-8b\nsequence: 4096\ncluster: {node: dgx-h100, nodes: 2}\nsoftware: megatron-core\n"
    "strategy: {tensor: 2, pipeline: 2, global_batch: 64, micro_batch: 2, sharding: zero1, precision: bf16}\n";

TEST(Aliases, MeanNamesThatThereAre) {
  std::set<std::string> keys;
  for (const KeyReference& k : spec_reference()) keys.insert(k.key);
  std::set<std::pair<std::string, std::string>> given;
  const std::map<std::string, std::string> folders = {
      {"cluster.node", "nodes/"}, {"cluster.gpu", "gpus/"}, {"software.profile", "software/"}};
  for (const AliasRow& row : alias_rows()) {
    EXPECT_TRUE(given.insert({row.at, row.given}).second) << row.given << " stands twice";
    EXPECT_NE(row.given, row.name);
    EXPECT_EQ(canonical_value(row.at, row.given), row.name);
    if (row.at == "strategy") {
      EXPECT_TRUE(keys.contains("strategy." + row.name)) << row.name;
    } else if (folders.contains(row.at)) {
      EXPECT_NE(data_file(folders.at(row.at) + row.name + ".json"), "") << row.name;
    } else {
      EXPECT_NO_THROW(parse_spec(kOwn, "own.yaml", {row.at + "=" + row.given, "strategy.virtual_stages=2"}))
          << row.given;
    }
  }
  EXPECT_GE(given.size(), 60U);
}

TEST(Aliases, ASpecInTheWordsOfOtherProgramsIsTheSameSpec) {
  const std::string other =
      "model: meta-llama/Meta-Llama-3.1-8B-Instruct\nsequence: 4096\ncluster: {node: H100, nodes: 2}\nsoftware: NeMo\n"
      "strategy: {tensor_model_parallel_size: 2, pipeline-parallel-degree: 2, global_batch_size: 64, mbs: 2, "
      "zero_stage: 1, precision: BF16}\n";
  const Spec a = parse_spec(kOwn, "a.yaml"), b = parse_spec(other, "b.yaml");
  EXPECT_EQ(a.model.name, b.model.name);
  EXPECT_EQ(a.cluster.node_id, b.cluster.node_id);
  EXPECT_EQ(a.software.name, b.software.name);
  EXPECT_EQ(std::tuple(a.strategy.tensor, a.strategy.pipeline, a.strategy.global_batch, a.strategy.micro_batch,
                       a.strategy.sharding, a.strategy.precision),
            std::tuple(b.strategy.tensor, b.strategy.pipeline, b.strategy.global_batch, b.strategy.micro_batch,
                       b.strategy.sharding, b.strategy.precision));
  for (const Origin& origin : b.origins) {
    if (origin.key != "cluster.node") continue;
    EXPECT_EQ(origin.asked, "given as H100");
  }
}

TEST(Aliases, ReachOptionsAndRangesOfASearch) {
  const OpenSpec open = parse_open_spec(
      "model: llama-3.1-8b\nsequence: 4096\ncluster: {node: dgx-h100}\nstrategy: {global_batch: 64}\n"
      "search: {zero_stage: [1, 3], tp: [1, 2]}\n",
      "s.yaml", {"strategy.tp_size=2"});
  EXPECT_EQ(open.spec.strategy.tensor, 2);
  ASSERT_EQ(open.search.size(), 2U);
  EXPECT_EQ(open.search[0].key, "sharding");
  EXPECT_EQ(open.search[0].values, (std::vector<std::string>{"zero1", "zero3"}));
  EXPECT_EQ(open.search[1].key, "tensor");
}

// The name of published weights says their format, which generated text has where the spec says none.
TEST(Aliases, NamesOfNarrowWeightsSayThePrecision) {
  const auto precision = [](const std::string& model, const std::string& more) {
    return parse_spec("{model: " + model + ", cluster: {node: dgx-b200, nodes: 1}" + more + "}", "hub.yaml")
        .strategy.precision;
  };
  const std::string text = ", workload: generate, generate: {batch: 8, input: 8, output: 2}";
  EXPECT_EQ(precision("Qwen/Qwen3-32B-FP8", text), Precision::fp8);
  EXPECT_EQ(precision("nvidia/DeepSeek-R1-0528-NVFP4", text + ", strategy: {tensor: 8}"), Precision::nvfp4);
  EXPECT_EQ(precision("Qwen/Qwen3-32B-FP8", text + ", strategy: {precision: bf16}"), Precision::bf16);
  EXPECT_EQ(precision("Qwen/Qwen3-32B-FP8", ", sequence: 64, strategy: {tensor: 8}"), Precision::bf16);
}

TEST(Aliases, NamesOfTheHubAreBuiltInModels) {
  EXPECT_EQ(canonical_model("Qwen/Qwen3-30B-A3B"), "qwen3-30b-a3b");
  EXPECT_EQ(canonical_model("mistralai/Mixtral-8x7B-v0.1"), "mixtral-8x7b");
  EXPECT_EQ(canonical_model("mistralai/Mistral-7B-v0.3"), "mistral-7b-v0.3");
  EXPECT_EQ(canonical_model("meta-llama/Llama-2-70b-chat-hf"), "llama-2-70b");
  EXPECT_EQ(canonical_model("nvidia/DeepSeek-R1-0528-NVFP4"), "deepseek-v3");
  EXPECT_EQ(canonical_model("Qwen/Qwen3-32B-FP8"), "qwen3-32b");
  EXPECT_EQ(canonical_model("openai/gpt-oss-120b"), "gpt-oss-120b");
  EXPECT_EQ(canonical_model("somebody/unknown-7b"), "somebody/unknown-7b");
}

}  // namespace
}  // namespace orrery
