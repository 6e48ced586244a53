#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

TEST(KernelLawsFile, WhatIsWrittenIsRead) {
  const std::string text(data_file("kernel_laws.json"));
  EXPECT_EQ(to_json(parse_kernel_laws(text, "laws.json")), text);
  EXPECT_EQ(built_in_kernel_laws().products.front().framework, "trtllm");
}

// Every GPU has six numbers, a family and a data sheet.
TEST(KernelLawsFile, EveryGpuIsInItsFamilies) {
  const KernelLaws& laws = built_in_kernel_laws();
  for (const auto& [gpu, rates] : laws.rates) {
    EXPECT_NE(family_of(laws.products, gpu), nullptr) << gpu;
    EXPECT_NE(family_of(laws.attention, gpu), nullptr) << gpu;
    EXPECT_EQ(find_gpu(gpu).tflops.contains("fp8"), rates.fp8 > 0) << gpu;
  }
  const auto parsed = nlohmann::json::parse(data_file("kernel_laws.json"));
  for (const auto& gpu : parsed["gpus"]) EXPECT_EQ(gpu.size(), 6U);
}

TEST(KernelLawsFile, ErrorsNameFileAndKey) {
  nlohmann::json broken = nlohmann::json::parse(data_file("kernel_laws.json"));
  broken["products"][0]["law"].erase("overlap");
  try {
    parse_kernel_laws(broken.dump(), "laws.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("laws.json: products[0].law"), std::string::npos) << error.what();
  }
}

// No GPU's products exceed its peak, and no time is below zero.
TEST(KernelLawsFile, EveryNumberHasItsRange) {
  const nlohmann::json good = nlohmann::json::parse(data_file("kernel_laws.json"));
  const auto with = [&](const char* path, double value) {
    nlohmann::json changed = good;
    changed[nlohmann::json::json_pointer(path)] = value;
    return changed.dump();
  };
  EXPECT_NO_THROW(parse_kernel_laws(with("/gpus/b200/bf16", 1), "laws.json"));
  EXPECT_THROW(parse_kernel_laws(with("/gpus/b200/bf16", 1.2), "laws.json"), Error);
  EXPECT_THROW(parse_kernel_laws(with("/gpus/b200/memory", -0.1), "laws.json"), Error);
  EXPECT_THROW(parse_kernel_laws(with("/products/0/law/smoothing", 2), "laws.json"), Error);
  EXPECT_THROW(parse_kernel_laws(with("/products/0/law/overlap", 0), "laws.json"), Error);
  EXPECT_THROW(parse_kernel_laws(with("/attention/0/law/start_us", -5), "laws.json"), Error);
}

}  // namespace
}  // namespace orrery
