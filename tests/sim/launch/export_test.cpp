#include "sim/launch/export.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/launch/import.h"
#include "tests/metamorphic/draw.h"

namespace orrery {
namespace {

using test::Draw;

std::string text_of(std::int64_t n) { return std::to_string(n); }

// A random spec of the keys of a framework's own rows, with degrees and batches that agree.
SpecValues random_values(Draw& draw, const Framework& framework) {
  SpecValues v;
  const auto set = [&](std::string_view key, const std::string& value) { v.set(key, value, Said::stated, ""); };
  for (const OptionRow& row : framework.rows()) {
    if (row.older || row.key.empty() || row.key.starts_with("launch.") || draw.chance(.4)) continue;
    if (row.words.empty())
      set(row.key, text_of(1 << draw.below(4)));
    else if (const OptionWord word = draw.from(row.words); !word.ours.empty())
      set(row.key, std::string(word.ours));
  }
  std::int64_t gpus = 1, data = 1 << draw.below(5), micro = 1 << draw.below(3);
  for (const char* key : {"strategy.tensor", "strategy.pipeline", "strategy.context"}) {
    const std::int64_t degree = 1 << draw.below(3);
    gpus *= degree;
    set(key, text_of(degree));
  }
  set("strategy.data", text_of(data));
  set("gpus", text_of(gpus * data));
  set("strategy.micro_batch", text_of(micro));
  set("strategy.global_batch", text_of(micro * data * static_cast<std::int64_t>(1 + draw.below(5))));
  set("strategy.virtual_stages", text_of(1 << draw.below(3)));
  set("model.layers", "32");
  if (framework.name == "torchtitan") set("model", "llama-3.1-8b");
  if (draw.chance(.2)) set("strategy.recompute", "[attention, mlp]");
  if (v.text("strategy.recompute") == "full" && draw.chance(.5)) set("strategy.recompute_layers", "4");
  if (v.text("strategy.sharding") == "hsdp") set("strategy.shard_group", "2");
  return v;
}

// Whether an option that is off was left out: its absence says the same.
bool is_off(const std::string& key, const std::string& value) {
  return value == "false" || value == "none" || key == "strategy.overlap.pipeline" ||
         (key == "strategy.virtual_stages" && value == "1");
}

// Returns the number of keys that were compared.
int expect_same(const SpecValues& given, const Exported& exported, const LaunchImport& back, const std::string& text) {
  const bool says_gpus = std::ranges::any_of(
      exported.options, [](const Setting& s) { return s.name == "num_processes" || s.name == "nnodes"; });
  int compared = 0;
  for (const SpecValue& v : given.all) {
    const bool unsaid = std::ranges::find(exported.unsaid, v.key) != exported.unsaid.end();
    const SpecValue* found = back.values.find(v.key);
    if (v.key == "gpus" && !says_gpus) continue;
    if (unsaid || v.key == "software" || (v.key == "model.layers" && back.values.find("model") != nullptr)) continue;
    if (found == nullptr && (v.key == "strategy.data" || v.key == "gpus" || is_off(v.key, v.value)))
      continue;  // one follows from the other
    EXPECT_EQ(found == nullptr ? "absent" : found->value, v.value) << v.key << "\n" << text;
    ++compared;
  }
  return compared;
}

class Export : public testing::TestWithParam<const char*> {};

TEST_P(Export, ImportOfAnExportIsTheSameStrategy) {
  const Framework& framework = find_framework(GetParam());
  constexpr const char* kNames[] = {"x.sh", "x.json", "x.toml", "x.yaml"};
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Draw draw(seed);
    const SpecValues given = random_values(draw, framework);
    const Exported exported = export_options(given, framework);
    const std::string text = launch_text(exported, framework.syntax);
    const LaunchImport back = import_launch({{kNames[static_cast<int>(framework.syntax)], text}});
    EXPECT_TRUE(back.not_translated.empty()) << back.not_translated[0].option << "\n" << text;
    for (const std::string& remark : back.remarks)
      EXPECT_NE(remark.find("--on"), std::string::npos) << remark << "\n" << text;
    compared += expect_same(given, exported, back, text);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 500 * 5);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, Export,
                         testing::Values("megatron", "deepspeed", "torchtitan", "nanotron", "fsdp"));

TEST(ExportOfASpec, DegreesAndWhatCannotBeSaid) {
  const Spec spec = parse_spec(
      "{model: llama-3.1-8b, sequence: 8192, cluster: {node: dgx-h100, nodes: 2}, software: megatron-core, strategy: "
      "{tensor: 4, pipeline: 2, "
      "sharding: zero1, micro_batch: 1, global_batch: 16, schedule: zb-h1, recompute: [attention, norm]}}",
      "spec.yaml");
  const Exported out = export_options(values_of(spec), find_framework("megatron"));
  const std::string text = launch_text(out, Syntax::shell);
  for (const char* part :
       {"--nnodes 2 --nproc_per_node 8", "--tensor-model-parallel-size 4", "--pipeline-model-parallel-size 2",
        "--use-distributed-optimizer", "--num-layers 32", "--swiglu", "--untie-embeddings-and-output-weights",
        "--recompute-modules core_attn layernorm", "--bf16"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(out.unsaid, std::vector<std::string>{"strategy.schedule"});
  EXPECT_EQ(text.find("clamp"), std::string::npos) << "no bound is no option: Megatron refuses 0\n" << text;
}

TEST(ExportOfASpec, AClampOfTheActivationIsSaid) {
  const Spec spec = parse_spec(
      "{model: {base: llama-3.1-8b, activation_clamp: 7}, sequence: 8192, cluster: {node: dgx-h100}, software: "
      "megatron-core, strategy: {global_batch: 8}}",
      "spec.yaml");
  const Exported out = export_options(values_of(spec), find_framework("megatron"));
  EXPECT_NE(launch_text(out, Syntax::shell).find("--activation-func-clamp-value 7"), std::string::npos);
}

// Parts of a built-in model for which Megatron has no option are named too; they were left out in silence.
TEST(ExportOfASpec, NamesPartsOfABuiltInModelThatCannotBeSaid) {
  const auto unsaid = [](const char* model, const char* framework = "megatron") {
    const Spec spec = parse_spec(fmt::format("{{model: {}, sequence: 4096, cluster: {{node: dgx-h100}}, software: "
                                             "megatron-core, strategy: {{global_batch: 8}}}}",
                                             model),
                                 "spec.yaml");
    return export_options(values_of(spec), find_framework(framework)).unsaid;
  };
  for (const char* framework : {"megatron", "nanotron"})
    EXPECT_EQ(unsaid("llama-3.1-8b", framework), std::vector<std::string>{}) << framework;
  EXPECT_EQ(unsaid("qwen3-0.6b", "nanotron").front(), "model.head_dim");  // twice the width over the heads
  EXPECT_EQ(std::ranges::count(unsaid("deepseek-v3", "nanotron"), "model.head_dim"), 0);
  const std::vector<std::string> seeing = unsaid(
      "{base: llama-3.1-8b, vision: {layers: 2, hidden: 64, heads: 4, "
      "feed_forward: 64}}");
  EXPECT_EQ(std::ranges::count(seeing, "model.vision.layers"), 1);
  EXPECT_EQ(std::ranges::count(seeing, "model.vision"), 0);
  const std::vector<std::string> of_v4 = unsaid("deepseek-v4-flash");
  for (const char* part : {"model.compressed_attention", "model.hyper_connections", "model.layer_kinds"})
    EXPECT_EQ(std::ranges::count(of_v4, part), 1) << part;
}

TEST(ExportOfASpec, SaysTheLengthOfASequenceThatIsAMap) {
  const Spec spec = parse_spec(
      "{model: llama-3.1-8b, sequence: {length: 4096, documents: {mean: 600, max: 4096}}, cluster: {node: dgx-h100}, "
      "software: megatron-core, strategy: {global_batch: 8}}",
      "spec.yaml");
  const std::string text = launch_text(export_options(values_of(spec), find_framework("megatron")), Syntax::shell);
  EXPECT_NE(text.find("--seq-length 4096"), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery
