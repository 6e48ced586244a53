#include "models/spec/generation.h"

#include <cmath>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec caching_spec(std::string_view model, std::int64_t tensor) {
  return parse_spec(
      fmt::format("{{model: {}, generate: {{input: 64}}, cluster: {{node: dgx-h100, nodes: 2}}, gpus: {}, "
                  "strategy: {{tensor: {}}}}}",
                  model, tensor, tensor),
      "t.yaml");
}

TEST(CachedBytes, AreKeysAndValuesOfTheRanksHeads) {
  EXPECT_EQ(cached_bytes(caching_spec("llama-3.1-8b", 1), 0), 2 * 8 * 128 * 2);
  EXPECT_EQ(cached_bytes(caching_spec("llama-3.1-8b", 4), 0), 2 * 2 * 128 * 2);
  EXPECT_EQ(cached_bytes(caching_spec("llama-3.1-8b", 16), 0), 2 * 1 * 128 * 2);  // two ranks hold each head
  Spec narrow = caching_spec("llama-3.1-8b", 1);
  narrow.generation->kv_precision = Precision::fp8;
  EXPECT_EQ(cached_bytes(narrow, 0), 2 * 8 * 128);
  narrow.generation->kv_precision = Precision::nvfp4;  // half a byte, and a byte for each 16
  EXPECT_EQ(cached_bytes(narrow, 0), 2 * 8 * (64 + 8));
}

TEST(CachedBytes, AreTheCompressedVectorOfLatentAttention) {
  for (const std::int64_t tensor : {1, 8})
    EXPECT_EQ(cached_bytes(caching_spec("deepseek-v3", tensor), 0), (512 + 64) * 2);
}

// A key of the index takes 128 codes of a byte and a scale.
TEST(CachedBytes, HaveTheKeyOfAnIndex) {
  EXPECT_EQ(cached_bytes(caching_spec("glm-5", 8), 0), (512 + 64) * 2 + 128 + 4);
}

// 64 heads of 128 x 128 in fp32, and 3 inputs of (2 x 16 + 64) x 128 columns; every fourth layer has a cache instead.
TEST(RecurrentBytes, DoNotGrowWithTheText) {
  for (const std::int64_t tensor : {1, 4}) {
    const Spec spec = caching_spec("qwen3.5-397b-a17b", tensor);
    for (std::int64_t layer = 0; layer < 8; ++layer) {
      const RecurrentBytes bytes = recurrent_bytes(spec, layer);
      const bool attends = layer % 4 == 3;
      EXPECT_EQ(bytes.states, attends ? 0 : 64 * 128 * 128 * 4 / tensor);
      EXPECT_EQ(bytes.inputs, attends ? 0 : 3 * (2 * 16 + 64) * 128 * 2 / tensor);
      EXPECT_EQ(cached_bytes(spec, layer) > 0, attends);
    }
  }
}

TEST(CachedTokens, AreWholeBlocksAndAtMostTheWindow) {
  const Spec spec = caching_spec("llama-3.1-8b", 1);
  EXPECT_EQ(cached_tokens(spec, 0, 1), 16);
  EXPECT_EQ(cached_tokens(spec, 0, 1024), 1024);
  EXPECT_EQ(cached_tokens(spec, 0, 1025), 1040);
  const Spec windowed = caching_spec("gemma-2-9b", 1);
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < windowed.model.layers; ++layer) {
    const bool window = has_window(windowed.model, layer);
    EXPECT_EQ(cached_tokens(windowed, layer, 8192), window ? 4096 + 16 : 8192) << layer;
    layers += window ? 1 : 0;
  }
  EXPECT_EQ(layers, windowed.model.layers / 2);
}

// 1 + a + ... + a^k = (1 - a^(k+1)) / (1 - a).
TEST(Speculation, YieldsAGeometricSum) {
  for (const double a : {0.0, 0.3, 0.7}) {
    for (std::int64_t k = 0; k < 5; ++k) {
      const Generation g = {.drafts = k, .acceptance = a};
      EXPECT_NEAR(g.tokens_a_pass(), (1 - std::pow(a, static_cast<double>(k + 1))) / (1 - a), 1e-12);
    }
  }
  EXPECT_EQ((Generation{.drafts = 3, .acceptance = 1}).tokens_a_pass(), 4);
}

}  // namespace
}  // namespace orrery
