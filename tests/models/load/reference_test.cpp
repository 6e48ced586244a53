// The reference of keys, held to the parser: every key that is read is there, its example is accepted, its words are
// those that the parser knows.
#include "models/load/reference.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/spec/software.h"

namespace orrery {
namespace {

constexpr const char* kEveryMap =
    "model: {layers: 8, hidden: 64, heads: 8, feed_forward: 128, vocab: 256, mla: {},\n"
    "        moe: {experts: 8, top_k: 2, feed_forward: 64},\n"
    "        vision: {layers: 32, hidden: 64, heads: 8, feed_forward: 64}}\n"
    "sequence: 64\n"
    "cluster: {gpu: h100-sxm, gpus_per_node: 8, nodes: 64, nic_Gbps: 400, network: {leaf: {nodes: 8}}, variation: {}}\n"
    "strategy: {}\n";

std::vector<std::string> keys_of_reference() {
  std::vector<std::string> keys;
  for (const KeyReference& k : spec_reference()) keys.push_back(k.key);
  return keys;
}

// The message with which a value is refused; "" if it is not.
std::string refusal_of(const std::string& key, const std::string& value) {
  try {
    const OpenSpec open = parse_open_spec(kEveryMap, "t.yaml", {key + "=" + value});
    return rule_broken_by(open.spec, "t.yaml");
  } catch (const Error& e) {
    return e.what();
  }
}

// Keys of list items, parts that a node has already, lists as long as another key says, files, and what belongs to
// adapters cannot be set by themselves.
bool stands_alone(const std::string& key) {
  return !key.starts_with("cluster.stragglers.") && !key.starts_with("cluster.network.faults.") &&
         !key.starts_with("cluster.network.sites.") && !key.starts_with("cluster.network.flaps.") &&
         !key.starts_with("cluster.network.pods.") && !key.starts_with("cluster.network.incast.") &&
         !key.starts_with("cluster.network.groups") && !key.starts_with("cluster.network.torus") &&
         !key.starts_with("cluster.network.graph") && key != "cluster.network.job_nodes" &&
         key != "cluster.network.placement.nodes" && !key.starts_with("cluster.gpu") && key != "cluster.node" &&
         key != "cluster.network.file" && !key.starts_with("distill") && !key.starts_with("dpo.strategy") &&
         key != "strategy.stage_replicas" &&
         (!key.starts_with("strategy.quantise.") || key == "strategy.quantise.weights") &&
         key != "model.lora.targets" && key != "model.lora.weights";
}

std::set<std::string> words_in(const std::string& text, std::string_view between) {
  std::set<std::string> words;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(between, start), text.size());
    words.insert(text.substr(start, end - start));
    start = end + between.size();
  }
  return words;
}

TEST(Reference, EveryKeyIsWhole) {
  std::set<std::string> seen;
  for (const KeyReference& k : spec_reference()) {
    EXPECT_TRUE(seen.insert(k.key).second) << k.key;
    for (const std::string* cell : {&k.type, &k.otherwise, &k.meaning, &k.example})
      EXPECT_FALSE(cell->empty()) << k.key;
  }
  EXPECT_GT(seen.size(), 200U);
}

// The values that a complete spec has, and the habits of stacks, have keys of the reference.
TEST(Reference, HasWhatTheReaderReads) {
  const std::vector<std::string> keys = keys_of_reference();
  const auto has = [&](const std::string& key) { return std::ranges::find(keys, key) != keys.end(); };
  for (const char* recipe : {"bloom-176b", "gpt-3-175b", "deepseek-v3"}) {
    try {
      for (const Origin& o : load_open_spec(recipe).spec.origins) EXPECT_TRUE(has(o.key)) << o.key;
    } catch (const Error&) {  // no such recipe
    }
  }
  for (const SoftwareKey& key : software_keys()) EXPECT_TRUE(has(fmt::format("software.{}", key.name))) << key.name;
}

TEST(Reference, ExamplesAreAccepted) {
  for (const KeyReference& k : spec_reference()) {
    if (!stands_alone(k.key)) continue;
    EXPECT_NO_THROW(parse_open_spec(kEveryMap, "t.yaml", {k.key + "=" + k.example})) << k.key;
  }
}

// The words of a key are those that the parser names when it refuses another one.
TEST(Reference, WordsAreThoseOfTheParser) {
  int compared = 0;
  for (const KeyReference& k : spec_reference()) {
    if (k.type.find(" | ") == std::string::npos || !stands_alone(k.key)) continue;
    const std::string message = refusal_of(k.key, "xyzzyxyzzy");
    const std::size_t known = message.find("known: ");
    if (known == std::string::npos) continue;
    const std::string list = "one or a list of ";
    const std::string type = k.type.starts_with(list) ? k.type.substr(list.size()) : k.type;
    std::set<std::string> words = words_in(message.substr(known + 7), ", "), told = words_in(type, " | ");
    std::erase_if(told, [](const std::string& word) { return word.find('{') != std::string::npos; });
    if (told.contains("name") || told.contains("path")) continue;
    if (k.key == "strategy.recompute")
      told = words_in(
          "full, selective, attention, norm, mlp, activation, moe, "
          "moe_activation, mla_up_proj",
          ", ");
    EXPECT_EQ(words, told) << k.key << ": " << message;
    ++compared;
  }
  EXPECT_GT(compared, 15);
}

// Defaults, types and units come from the parser.
TEST(Reference, TellsTypesUnitsAndDefaults) {
  std::map<std::string, KeyReference> rows;
  for (const KeyReference& k : spec_reference()) rows[k.key] = k;
  EXPECT_EQ(rows["strategy.clip"].otherwise, "1");
  EXPECT_EQ(rows["strategy.clip"].type, "number");
  EXPECT_EQ(rows["strategy.bucket_MiB"].unit, "MiB");
  EXPECT_EQ(rows["strategy.bucket_MiB"].otherwise, "the stack's");
  EXPECT_EQ(rows["strategy.global_batch"].otherwise, "micro_batch * data");
  EXPECT_EQ(rows["strategy.overlap.tensor"].otherwise, "false");
  EXPECT_EQ(rows["model.layers"].otherwise, "required");
  EXPECT_EQ(rows["software.launch_us"].unit, "us");
  EXPECT_EQ(rows["software.compile"].type, "true or false");
  EXPECT_EQ(rows["strategy.context_order"].type, "zigzag | contiguous");
}

// A key that no table has is refused, so that none can be read unseen.
TEST(Reference, OtherKeysAreRefused) {
  for (const KeyReference& k : spec_reference()) {
    const bool of_kind =
        k.key == "cluster.network.groups" || k.key == "cluster.network.torus" || k.key == "cluster.network.graph";
    if (k.type != "map" || of_kind) continue;
    EXPECT_NE(refusal_of(k.key + ".xyzzyxyzzy", "1").find("unknown key"), std::string::npos) << k.key;
  }
}

}  // namespace
}  // namespace orrery
