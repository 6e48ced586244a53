// The JSON Schema of specs: every example holds to it, and each kind of mistake does not. Random specs are in
// tests/metamorphic.
#include "models/load/schema.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "models/base/input_file.h"
#include "models/load/load_spec.h"
#include "models/load/reference.h"
#include "models/load/tree.h"
#include "models/spec/recipes.h"
#include "tests/json_schema.h"

namespace orrery {
namespace {

using nlohmann::json;

// A tree as JSON, with figures and switches as an editor reads them from YAML.
json json_of(const SpecNode& node) {
  if (node.kind == SpecNode::Kind::null) return nullptr;
  if (node.kind == SpecNode::Kind::scalar) {
    json value = json::parse(node.text, nullptr, false);
    return value.is_number() || value.is_boolean() ? value : json(node.text);
  }
  json value = node.kind == SpecNode::Kind::list ? json::array() : json::object();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (node.kind == SpecNode::Kind::list)
      value.push_back(json_of(node.items[i]));
    else
      value[node.keys[i]] = json_of(node.items[i]);
  }
  return value;
}

json spec(const std::string& text) { return json_of(parse_tree(text, "spec.yaml")); }

const test::SchemaCheck& check() {
  static const test::SchemaCheck made(json::parse(spec_schema()));
  return made;
}

bool holds(const std::string& text) { return check().holds(spec(text)); }

const std::string kPlain = "model: gpt3-175b\nsequence: 2048\ncluster: dgx-a100\n";

TEST(Schema, EveryExampleHolds) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_TRUE(holds(read_input(entry.path().string(), kMostSettings))) << entry.path();
    ++examples;
  }
  EXPECT_GT(examples, 15);
  for (const std::string_view name : recipe_names()) EXPECT_TRUE(holds(find_recipe(name).spec)) << name;
}

// The reference's own examples hold at their keys, those of items of a list aside.
TEST(Schema, EveryKeysExampleHolds) {
  for (const KeyReference& k : spec_reference()) {
    if (k.key.starts_with("cluster.stragglers.")) continue;
    std::string text = k.example;
    for (std::size_t end = k.key.size(); end != std::string::npos;) {
      const std::size_t dot = end == 0 ? std::string::npos : k.key.rfind('.', end - 1);
      const std::size_t start = dot == std::string::npos ? 0 : dot + 1;
      text = "{" + k.key.substr(start, end - start) + ": " + text + "}";
      end = dot;
    }
    json whole = spec(kPlain);
    whole.update(spec(text));
    EXPECT_TRUE(check().holds(whole)) << text;
  }
}

TEST(Schema, OtherNamesUnitsAndShortFormsHold) {
  EXPECT_TRUE(holds(kPlain));
  EXPECT_TRUE(holds(kPlain + "strategy: {tp: 8, PP-size: 4, tensor_model_parallel_size: 2, zero_stage: 2}\n"));
  EXPECT_TRUE(holds(kPlain + "strategy: {precision: BFloat16, bucket_MiB: 25 MB, global_batch: 4k, tensor: null}\n"));
  EXPECT_TRUE(holds(kPlain + "strategy: {offload: {optimizer: cpu, activations: {device: nvme, layers: 2}}}\n"));
  EXPECT_TRUE(
      holds("model: meta-llama/Llama-3.1-8B\nsequence: 8Ki\ncluster: {node: H100, nodes: 2}\nsoftware: nemo\n"));
}

// YAML reads some names as numbers, and the reader takes them.
TEST(Schema, NamesThatLookLikeNumbersHold) {
  EXPECT_TRUE(
      holds("model: {base: gpt3-175b, name: 405}\nsequence: 0.5k\ncluster: {node: dgx-a100, host: {cpu: 8480}}\n"));
  EXPECT_TRUE(holds(kPlain + "search: {tensor: [1, 2], schedule: 1f1b}\n"));
}

TEST(Schema, MistakesDoNotHold) {
  EXPECT_FALSE(holds("model: gpt3-175b\nsequence: 2048.5\ncluster: dgx-a100\n"));
  EXPECT_FALSE(holds(kPlain + "search: {tensor: {from: 1}}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {recompute: {}}\n"));
  EXPECT_FALSE(holds("model: gpt3-175b\nsequence: 2048\n"));
  EXPECT_FALSE(holds(kPlain + "stratgy: {tensor: 2}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {tensr: 2}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {tensor: two}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {tensor: 1.5}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {tensor: [2]}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: [tensor]\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {schedule: 2f2b}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {sequence_parallel: 1}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {overlap: {tensors: true}}\n"));
  EXPECT_FALSE(holds(kPlain + "strategy: {recompute: [mlp, nose]}\n"));
  EXPECT_FALSE(holds("model: gpt3-175b\nsequence: 2048\ncluster: dgx-a101\n"));
  EXPECT_FALSE(holds(kPlain + "software: {profile: megatron-care}\n"));
  EXPECT_FALSE(holds("model: {base: gpt3-175b, layers: many}\nsequence: 2048\ncluster: dgx-a100\n"));
}

// Lists of words refuse a map, which an empty one was not.
TEST(Schema, TheReaderRefusesAMapForAListOfWords) {
  for (const char* text : {"strategy: {recompute: {}}\n", "model: {base: gpt3-175b, frozen: {}}\n"}) {
    std::string whole = text;
    for (const char* line : {"model: gpt3-175b\n", "sequence: 2048\n", "cluster: dgx-a100\n"})
      if (std::string_view(line) != "model: gpt3-175b\n" || !whole.starts_with("model")) whole += line;
    try {
      parse_spec(whole, "spec.yaml");
      ADD_FAILURE() << whole;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("needs a word or a list of words"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
