#include "sim/launch/import.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

LaunchText file(const std::string& name) {
  return {name, read_input(std::string(ORRERY_SOURCE_DIR) + "/tests/data/launch/" + name, kMostSettings)};
}
LaunchImport import_files(const std::vector<std::string>& names, std::string_view on = "") {
  std::vector<LaunchText> texts;
  for (const std::string& name : names) texts.push_back(file(name));
  return import_launch(texts, on);
}

using Expected = std::vector<std::pair<const char*, const char*>>;
void expect_values(const LaunchImport& found, const Expected& expected) {
  for (const auto& [key, value] : expected) {
    const SpecValue* v = found.values.find(key);
    EXPECT_EQ(v == nullptr ? "absent" : v->said == Said::missing ? "missing" : v->value, value) << key;
  }
}

std::string untranslated(const LaunchImport& found) {
  std::string out;
  for (const Untranslated& u : found.not_translated) out += u.from + " " + u.option + "\n";
  return out;
}
bool has_remark(const LaunchImport& found, std::string_view part) {
  return std::ranges::any_of(found.remarks, [&](const std::string& r) { return r.find(part) != std::string::npos; });
}

// Values that were read off the files by eye.
TEST(Import, AMegatronScript) {
  const LaunchImport found = import_files({"megatron.sh"}, "4xdgx-h100");
  expect_values(found, {{"strategy.tensor", "4"},
                        {"strategy.pipeline", "2"},
                        {"strategy.virtual_stages", "4"},
                        {"gpus", "32"},
                        {"strategy.micro_batch", "2"},
                        {"strategy.global_batch", "128"},
                        {"strategy.sharding", "zero1"},
                        {"strategy.precision", "bf16"},
                        {"strategy.recompute", "selective"},
                        {"strategy.sequence_parallel", "true"},
                        {"model.layers", "32"},
                        {"model.kv_heads", "8"},
                        {"model.gated", "true"},
                        {"model.tied_embeddings", "false"},
                        {"model.feed_forward", "14336"},
                        {"model.vocab", "128256"},
                        {"sequence", "4096"},
                        {"cluster.node", "dgx-h100"},
                        {"model.bias", "false"},
                        {"strategy.overlap.parameter_gather", "false"}});
  EXPECT_EQ(found.values.find("strategy.overlap.parameter_gather")->said, Said::assumed);
  EXPECT_EQ(untranslated(found), "megatron.sh:30 decoder_first_pipeline_num_layers\n");
  EXPECT_TRUE(found.remarks.empty());
  const Spec spec = parse_spec(spec_yaml(found.values, {}), "spec.yaml");
  EXPECT_EQ(spec.strategy.data, 4);
}

TEST(Import, ATorchtitanFile) {
  const LaunchImport found = import_files({"torchtitan.toml"}, "2xdgx-h100");
  expect_values(found, {{"model", "llama-3.1-8b"},
                        {"sequence", "8192"},
                        {"strategy.tensor", "2"},
                        {"strategy.sharding", "fsdp"},
                        {"strategy.micro_batch", "2"},
                        {"strategy.global_batch", "16"},
                        {"strategy.recompute", "selective"},
                        {"software.compile", "true"},
                        {"gpus", "16"},
                        {"strategy.precision", "fp8"}});
  EXPECT_EQ(untranslated(found), "torchtitan.toml:21 parallelism.disable_loss_parallel\n");
}

TEST(Import, AccelerateWithTheDeepSpeedFileItNames) {
  const LaunchImport alone = import_files({"accelerate.yaml"});
  EXPECT_TRUE(has_remark(alone, "accelerate.yaml:3 deepspeed_config.deepspeed_config_file") ||
              has_remark(alone, "is a further file"));
  EXPECT_EQ(alone.values.find("strategy.sharding"), nullptr);
  const LaunchImport both = import_files({"accelerate.yaml", "deepspeed.json"});
  expect_values(both, {{"gpus", "8"},
                       {"strategy.sharding", "zero2"},
                       {"strategy.offload.optimizer", "cpu"},
                       {"strategy.precision", "bf16"},
                       {"strategy.global_batch", "64"},
                       {"strategy.micro_batch", "4"}});
  EXPECT_TRUE(has_remark(both, "contradicts bf16"));
}

TEST(Import, ANanotronFileWithAKeyTwice) {
  const LaunchImport found = import_files({"nanotron.yaml"});
  expect_values(found, {{"strategy.data", "4"},
                        {"strategy.tensor", "2"},
                        {"strategy.schedule", "1f1b"},
                        {"strategy.global_batch", "32"},
                        {"strategy.sharding", "zero1"},
                        {"model.layers", "24"},
                        {"model.moe.experts", "8"},
                        {"model.moe.feed_forward", "missing"},
                        {"strategy.recompute", "none"}});
  EXPECT_TRUE(has_remark(found, "nanotron.yaml:22: moe_config: the key is given twice"));
}

TEST(Import, NemoAndPrimus) {
  const LaunchImport nemo = import_files({"nemo.yaml"});
  expect_values(nemo, {{"gpus", "64"},
                       {"strategy.tensor", "4"},
                       {"sequence", "2048"},
                       {"strategy.sharding", "zero1"},
                       {"strategy.recompute", "none"},
                       {"model.gated", "true"},
                       {"model.tied_embeddings", "false"}});
  EXPECT_NE(untranslated(nemo).find("teacher"), std::string::npos);
  const LaunchImport primus = import_files({"primus.yaml"});
  expect_values(primus, {{"strategy.tensor", "8"}, {"strategy.pipeline", "1"}, {"model.layers", "missing"}});
  EXPECT_TRUE(has_remark(primus, "primus.yaml:4: modules.pre_trainer.model: small.yaml is a further file"));
  EXPECT_EQ(primus.values.find("strategy.precision"), nullptr);
}

TEST(Import, ACommandLine) {
  const LaunchImport found =
      import_launch({{"command line",
                      "torchrun --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size 8 "
                      "--pipeline-model-parallel-size 2 --num-layers 12 --tensor-model-parallel-size 4"}});
  expect_values(found, {{"strategy.tensor", "4"},
                        {"gpus", "8"},
                        {"model.layers", "12"},
                        {"strategy.global_batch", "missing"},
                        {"strategy.precision", "fp32"}});
  EXPECT_TRUE(has_remark(found, "4 after 8"));
}

// The options of gpt-oss's activation, and of graphs of parts of a layer; a deprecated flag that is off says nothing.
TEST(Import, ClampsAndGraphsOfMegatronCore) {
  const LaunchImport found = import_launch(
      {{"x.sh",
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --quick-geglu --activation-func-clamp-value 7.0 "
        "--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router moe_preprocess"}});
  expect_values(found, {{"model.gated", "true"},
                        {"model.activation_clamp", "7"},
                        {"software.cuda_graphs", "true"},
                        {"software.cuda_graph_scope", "attention_and_router"}});
}

TEST(Import, WhatTheGpusCannotHoldIsSaid) {
  const LaunchImport found = import_launch(
      {{"x.sh", "torchrun --nproc_per_node 8 t.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16"}});
  EXPECT_TRUE(has_remark(found, "x.sh:1"));
  EXPECT_TRUE(has_remark(found, "8 GPUs cannot hold tensor 8 x pipeline 16"));
}

TEST(Import, AValueThatTheFileDoesNotStateIsNotGuessed) {
  const LaunchImport found = import_launch(
      {{"x.sh", "torchrun t.py --tensor-model-parallel-size $TP --micro-batch-size many --num-layers ${L:-4}"}});
  expect_values(found, {{"strategy.tensor", "absent"}, {"strategy.micro_batch", "missing"}, {"model.layers", "4"}});
  ASSERT_EQ(found.not_translated.size(), 2U);
  EXPECT_EQ(found.not_translated[0].why, "the file does not set this variable");
  EXPECT_EQ(found.not_translated[1].why, "is no number");
}

TEST(Import, AHuggingFaceConfig) {
  const LaunchImport found = import_launch(
      {{"config.json",
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})"}});
  expect_values(
      found, {{"model.base", "config.json"}, {"model.layers", "2"}, {"model.kv_heads", "4"}, {"sequence", "missing"}});
}

TEST(Import, TextsOfNoFrameworkAreRefused) {
  EXPECT_THROW(import_launch({{"x.yaml", "a: 1\n"}}), Error);
  EXPECT_THROW(import_launch({{"x.json", "{}"}}), Error);
  EXPECT_THROW(import_launch({{"x.sh", ""}}), Error);
}

}  // namespace
}  // namespace orrery
