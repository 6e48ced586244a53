#include "sim/generate/formats_text.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec with_format(std::string_view strategy) {
  return parse_spec(
      fmt::format("{{model: llama-3.1-8b, workload: generate, generate: {{batch: 8, input: 64}}, cluster: "
                  "{{node: dgx-h100, nodes: 1}}, gpus: 1, software: vllm, strategy: {}}}",
                  strategy),
      "t.yaml");
}

TEST(FormatsText, SaysBitsAndProducts) {
  EXPECT_EQ(formats_text(with_format("{}")), "");
  EXPECT_EQ(
      formats_text(with_format("{quantise: {weights: awq}}")),
      "int4, a scale for 128 weights, zero points: 4.16 bits a weight of the layers; products widen them to bf16");
  EXPECT_EQ(formats_text(with_format("{quantise: {weights: smoothquant}}")),
            "int8, a scale a matrix: 8.00 bits a weight of the layers; products run in int8");
  EXPECT_EQ(formats_text(with_format("{quantise: {weights: mxfp4, layers: feed_forward}}")),
            "mxfp4, a scale for 32 weights: 4.25 bits a weight of MLP and experts; their products widen them to bf16");
  EXPECT_DOUBLE_EQ(bits_of_weights(with_format("{}")), 16);
  EXPECT_NEAR(bits_of_weights(with_format("{quantise: {weights: nvfp4}}")), 4.5, 1e-4);
}

}  // namespace
}  // namespace orrery
