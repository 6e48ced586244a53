#include "models/spec/software.h"

#include <set>
#include <variant>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/precision.h"

namespace orrery {
namespace {

const std::set<std::string_view> kContract = {"megatron-lm-2021",
                                              "megatron-lm-2022",
                                              "megatron-lm-2023",
                                              "megatron-deepspeed-2022",
                                              "megatron-core",
                                              "megatron-core-mlperf",
                                              "pytorch-fsdp",
                                              "torchtitan",
                                              "nanotron",
                                              "deepspeed-2019",
                                              "deepspeed-megatron-2021",
                                              "axonn",
                                              "meta-llama3",
                                              "orrery"};
// Stacks of inference.
const std::set<std::string_view> kInference = {
    "vllm",     "vllm-synchronous", "sglang", "tensorrt-llm", "tensorrt-llm-engines", "tensorrt-llm-0.9",
    "lmdeploy", "tinychat"};
// Stacks on AMD's GPUs.
const std::set<std::string_view> kRocm = {"rocm-megatron", "rocm-torchtitan"};

TEST(Software, HasTheProfilesOfTheContract) {
  const std::vector<std::string_view> names = data_names("software");
  std::set<std::string_view> all = kContract;
  all.insert(kInference.begin(), kInference.end());
  all.insert(kRocm.begin(), kRocm.end());
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()), all);
}

TEST(Software, EveryStatedFeatureIsKnownAndSourced) {
  std::set<std::pair<std::string, std::string>> known, root;
  for (const SoftwareKey& key : software_keys()) known.emplace(key.group, key.name);
  for (std::string_view name : data_names("software")) {
    const nlohmann::json json = nlohmann::json::parse(data_file("software/" + std::string(name) + ".json"));
    EXPECT_FALSE(json.at("about").get<std::string>().empty()) << name;
    for (const auto& [group, features] : json.items()) {
      if (!features.is_object()) continue;
      for (const auto& [key, feature] : features.items()) {
        EXPECT_TRUE(known.contains({group, key})) << name << ": " << group << '.' << key;
        EXPECT_FALSE(feature.at("source").get<std::string>().empty()) << name << ": " << key << " has no source";
        if (!json.contains("like")) root.emplace(group, key);
      }
    }
  }
  EXPECT_EQ(root, known) << "the stack that is like no other says everything";
}

// A stack's file contains only the values that differ from the stack it is based on.
TEST(Software, FilesHoldWhatDiffers) {
  for (std::string_view name : data_names("software")) {
    const nlohmann::json json = nlohmann::json::parse(data_file("software/" + std::string(name) + ".json"));
    if (!json.contains("like")) continue;
    const Software own = find_software(name), like = find_software(json.at("like").get<std::string>());
    for (const SoftwareKey& key : software_keys()) {
      const bool stated = json.contains(key.group) && json.at(key.group).contains(key.name);
      if (stated)
        std::visit([&](const auto& field) { EXPECT_NE(field.get(own), field.get(like)) << name << ": " << key.name; },
                   key.field);
    }
  }
}

TEST(Software, WordsGoBothWays) {
  int words = 0;
  for (const SoftwareKey& key : software_keys()) {
    const auto* word = std::get_if<SoftwareWord>(&key.field);
    if (word == nullptr) continue;
    Software software;
    for (const std::string_view name : word->names()) {
      word->set(software, word->what, name);
      EXPECT_EQ(word->get(software), name) << key.name;
    }
    EXPECT_THROW(word->set(software, word->what, "xyzzy"), Error) << key.name;
    ++words;
  }
  EXPECT_EQ(words, 21);
}

TEST(Software, FeaturesReachTheStruct) {
  EXPECT_EQ(find_software("nanotron").layout.stage_rule, StageRule::by_cost_nanotron);
  EXPECT_EQ(find_software("megatron-core").layout.vocab_multiple, 128);
  EXPECT_EQ(find_software("megatron-deepspeed-2022").host.call_us, 112);
  EXPECT_TRUE(find_software("torchtitan").memory.expandable_segments);
  EXPECT_FALSE(find_software("megatron-lm-2021").communication.tensor_reduce_overlaps_wgrad);
  EXPECT_TRUE(find_software("megatron-lm-2022").communication.tensor_reduce_overlaps_wgrad);
  EXPECT_TRUE(find_software("megatron-lm-2021").communication.blocking_receives);
  EXPECT_EQ(find_software("orrery").layout.stage_rule, StageRule::even);
  for (std::string_view name : data_names("software")) {
    const std::string precision = find_software(name).memory.gradient_precision;
    EXPECT_TRUE(precision == "precision" || storage_bytes(find_precision(precision)) >= 2) << name;
  }
}

// The ratio of an autograd call to a call from Python is a property of PyTorch, so it is one number for the stacks for
// which it was fitted.
TEST(Software, CallsCostTheSameWhereHostsWereFitted) {
  const Software nanotron = find_software("nanotron"), deepspeed = find_software("megatron-deepspeed-2022");
  EXPECT_LT(nanotron.host.backward_call_share, 0.5);
  EXPECT_EQ(nanotron.host.backward_call_share, deepspeed.host.backward_call_share);
  EXPECT_NEAR(nanotron.host.call_us / deepspeed.host.call_us, 1, 0.1);
}

TEST(Software, UnknownNamesListTheKnown) { EXPECT_THROW(find_software("megatron"), Error); }

}  // namespace
}  // namespace orrery
