#include "sim/published/stack.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

nlohmann::json named(const nlohmann::json& software, const nlohmann::json& framework, const std::string& gpu) {
  nlohmann::json row = {{"framework", framework}, {"spec", {{"cluster", {{"gpu", gpu}}}}}};
  if (!software.is_null()) row["spec"]["software"] = software;
  name_stack(row);
  return row["spec"]["software"];
}

std::string profile(const nlohmann::json& software, const nlohmann::json& framework, const std::string& gpu) {
  return named(software, framework, gpu).value("profile", "");
}

TEST(PublishedStack, BuiltInOnesStay) {
  EXPECT_EQ(named("nanotron", "Megatron-LM", "h100-sxm"), "nanotron");
  const nlohmann::json map = {{"profile", "torchtitan"}, {"compile", true}};
  EXPECT_EQ(named(map, nullptr, "h100-sxm"), map);
  EXPECT_EQ(named(nullptr, map, "h100-sxm"), map);
}

TEST(PublishedStack, OthersGoByTheirWordsAndTheirGpusAge) {
  EXPECT_EQ(profile(nullptr, "Megatron-LM", "v100-sxm3-32gb"), "megatron-lm-2021");
  EXPECT_EQ(profile(nullptr, "Megatron-LM", "a100-sxm-80gb"), "megatron-lm-2022");
  EXPECT_EQ(profile(nullptr, "Megatron-LM", "b200"), "megatron-core");
  EXPECT_EQ(profile("GPT-NeoX", "DeepSpeed", "a100-sxm-40gb"), "megatron-deepspeed-2022");
  EXPECT_EQ(profile(nullptr, "Lightning, FSDP", "a100-sxm-40gb"), "pytorch-fsdp");
  EXPECT_EQ(profile("MegaScale", nullptr, "a100-sxm-80gb"), "megatron-lm-2022");
  EXPECT_EQ(profile("something", nullptr, "v100-pcie"), "megatron-lm-2021");
  EXPECT_EQ(profile("something", nullptr, "h800-sxm"), "megatron-core");
}

// A published step that names no software stack gets one by sharding and by the GPU's age, never the default stack,
// which is this program's own executor.
TEST(PublishedStack, SilentRowsGoByTheirShardingAndTheirGpusAge) {
  const auto silent = [](const std::string& gpu, const std::string& sharding) {
    nlohmann::json row;
    row["spec"]["cluster"]["gpu"] = gpu;
    if (!sharding.empty()) row["spec"]["strategy"]["sharding"] = sharding;
    name_stack(row);
    return row["spec"]["software"].value("profile", "");
  };
  EXPECT_EQ(silent("v100-pcie", ""), "megatron-lm-2021");
  EXPECT_EQ(silent("h100-sxm", "zero1"), "megatron-core");
  EXPECT_EQ(silent("h100-sxm", "fsdp"), "pytorch-fsdp");
  EXPECT_EQ(silent("a100-sxm-80gb", "hsdp"), "pytorch-fsdp");
  EXPECT_EQ(silent("a100-sxm-80gb", "zero3"), "megatron-deepspeed-2022");
}

TEST(PublishedStack, OnRocmStacksHaveProfilesOfTheirOwn) {
  EXPECT_EQ(named("megatron-core", "Primus, Megatron-LM backend, ROCm", "mi300x"), "rocm-megatron");
  EXPECT_EQ(profile(nullptr, "torchtitan, ROCm", "mi355x"), "rocm-torchtitan");
  EXPECT_EQ(profile({{"profile", "megatron-core"}, {"call_us", 10}}, "ROCm", "mi300x"), "rocm-megatron");
}

TEST(PublishedStack, OtherKeysStay) {
  const nlohmann::json software = named({{"profile", "NeMo 25"}, {"cuda_graphs", true}}, "NeMo", "gb200");
  EXPECT_EQ(software.at("profile"), "megatron-core");
  EXPECT_EQ(software.at("cuda_graphs"), true);
}

}  // namespace
}  // namespace orrery
