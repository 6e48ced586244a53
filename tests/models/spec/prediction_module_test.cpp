#include "models/spec/prediction_module.h"

#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

TEST(PredictionModule, IsLikeTheLastLayer) {
  const Model deepseek = find_model("deepseek-v3"), hybrid = find_model("qwen3.5-397b-a17b");
  EXPECT_EQ(with_module(deepseek).layers, 62);
  EXPECT_TRUE(has_experts(with_module(deepseek), 61));
  EXPECT_FALSE(has_experts(with_module(deepseek), 2));
  EXPECT_EQ(module_alone(deepseek).layers, 1);
  EXPECT_TRUE(has_experts(module_alone(deepseek), 0));
  const Model joined = with_module(hybrid);
  for (std::int64_t layer = 0; layer < hybrid.layers; ++layer)
    EXPECT_EQ(layer_kind(joined, layer).mixer, layer_kind(hybrid, layer).mixer);
  EXPECT_EQ(layer_kind(joined, hybrid.layers).mixer, layer_kind(hybrid, hybrid.layers - 1).mixer);
  EXPECT_EQ(layer_kind(module_alone(hybrid), 0).mixer, layer_kind(hybrid, hybrid.layers - 1).mixer);
}

}  // namespace
}  // namespace orrery
