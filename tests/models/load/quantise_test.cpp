#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec quantised(std::string_view strategy, std::string_view workload = "generate: {batch: 8, input: 64, output: 8}",
               std::string_view gpu = "h100-sxm") {
  return parse_spec(fmt::format("{{model: llama-3.2-1b, sequence: 64, {}, cluster: {{gpu: {}, gpus_per_node: 8, nodes: "
                                "1}}, gpus: 4, software: vllm, strategy: {}}}",
                                workload, gpu, strategy),
                    "t.yaml");
}

std::string quantise_refusal(std::string_view strategy,
                             std::string_view workload = "generate: {batch: 8, input: 64, output: 8}",
                             std::string_view gpu = "h100-sxm") {
  try {
    make_plan(quantised(strategy, workload, gpu));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Quantise, NamesFormats) {
  const auto of = [](std::string_view word) {
    return quantised(fmt::format("{{quantise: {{weights: {}}}}}", word)).strategy;
  };
  EXPECT_EQ(of("fp8").weights, (WeightFormat{.code = WeightCode::fp8, .group = kTensorGroup}));
  EXPECT_EQ(of("int8").weights, (WeightFormat{.code = WeightCode::int8, .group = kChannelGroup}));
  EXPECT_EQ(of("int4").weights, (WeightFormat{.code = WeightCode::int4, .group = 128}));
  EXPECT_EQ(of("nvfp4").weights, (WeightFormat{.code = WeightCode::nvfp4, .group = 16}));
  EXPECT_EQ(of("mxfp4").weights, (WeightFormat{.code = WeightCode::mxfp4, .group = 32}));
  EXPECT_EQ(of("awq").weights, (WeightFormat{.code = WeightCode::int4, .group = 128, .zeros = true}));
  EXPECT_EQ(of("gptq").weights, of("int4").weights);
  EXPECT_EQ(of("smoothquant").precision, Precision::int8);
  EXPECT_EQ(of("spqr").weights.outliers, 10'000);
  EXPECT_EQ(of("int4").precision, Precision::bf16);
}

TEST(Quantise, LayersAreChosenWhereTextIsGenerated) {
  EXPECT_EQ(quantised("{quantise: {weights: int8, layers: feed_forward}}").strategy.quantised_layers,
            QuantisedLayers::feed_forward);
  EXPECT_THROW(quantised("{quantise: {weights: int8, layers: feed_forward}}", "workload: train"), Error);
}

// An eight-bit precision stores the weights as its products read them.
TEST(Quantise, FollowsThePrecision) {
  EXPECT_EQ(quantised("{precision: fp8}").strategy.weights.code, WeightCode::fp8);
  EXPECT_EQ(quantised("{precision: nvfp4}", "generate: {batch: 8, input: 64}", "b200").strategy.weights.code,
            WeightCode::nvfp4);
  EXPECT_FALSE(quantised("{precision: bf16}").strategy.weights.narrow());
  EXPECT_FALSE(quantised("{precision: fp8}", "workload: train").strategy.weights.narrow());
  const Spec both = quantised("{quantise: {weights: fp8, activations: fp8}}");
  EXPECT_EQ(both.strategy.precision, Precision::fp8);
  EXPECT_EQ(both.generation->kv_precision, Precision::bf16);
}

TEST(Quantise, RefusesWhatDoesNotFit) {
  const auto says = [](std::string_view quantise, std::string_view part) {
    const std::string text = quantise_refusal(fmt::format("{{quantise: {}}}", quantise));
    EXPECT_NE(text.find(part), std::string::npos) << quantise << ": " << text;
  };
  says("{weights: int5}", "int5");
  says("{group: 64}", "none; the other keys");
  says("{weights: int4, group: 0}", "0 is not between 1");
  says("{weights: nvfp4, group: 32}", "blocks of 16");
  says("{weights: mxfp4, group: 16}", "blocks of 32");
  says("{weights: int4, layers: half}", "unknown part half");
  says("{weights: int4, layers: experts}", "has none");
  says("{weights: fp8, zero_points: true}", "no zero points");
  says("{weights: fp8, outliers: 0.01}", "has none");
  says("{weights: int4, outliers: 0.7}", "not between 0 and 0.5");
  says("{weights: int8, activations: fp8}", "no product reads both");
  says("{weights: int4, activations: int4}", "no product has such inputs");
  says("{weights: int4, group: 96}", "does not divide the");
  EXPECT_EQ(quantise_refusal("{quantise: {weights: int4, activations: int8}}"), "");
  EXPECT_NE(
      quantise_refusal("{precision: fp8, quantise: {weights: int4, activations: int8}}").find("leave one of them out"),
      std::string::npos);
  EXPECT_NE(quantise_refusal("{precision: int8}", "workload: train").find("none in which a model trains"),
            std::string::npos);
}

// Groups end where a rank's part of a row ends: of the 8192 inputs of the MLP's second matrix, 4 ranks have 2048 each.
TEST(Quantise, RefusesWhatItWouldOverride) {
  EXPECT_NE(quantise_refusal("{precision: fp8, quantise: {weights: smoothquant}}").find("activations are int8"),
            std::string::npos);
  EXPECT_NE(quantise_refusal("{precision: fp32, quantise: {weights: int8, activations: int8}}").find("fp32, but"),
            std::string::npos);
  EXPECT_EQ(quantise_refusal("{precision: bf16, quantise: {weights: smoothquant}}"), "");
  EXPECT_NE(quantise_refusal("{precision: fp8, quantise: {weights: none}}").find("weights that are stored so"),
            std::string::npos);
  EXPECT_NE(quantise_refusal("{quantise: {weights: int4, outliers: 1.0e-7}}").find("one in a million"),
            std::string::npos);
}

TEST(Quantise, GroupsLieInsideAShard) {
  EXPECT_EQ(quantise_refusal("{tensor: 4, data: 1, quantise: {weights: int4, group: 512}}"), "");
  const std::string stated = quantise_refusal("{tensor: 4, data: 1, quantise: {weights: int4, group: 1024}}");
  EXPECT_NE(stated.find("set quantise.group: 512, or take fewer tensor ranks"), std::string::npos) << stated;
  EXPECT_EQ(stated.find("default"), std::string::npos) << stated;
  try {
    make_plan(
        parse_spec("{model: {name: tiny, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250}, generate: "
                   "{input: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1, software: vllm, strategy: "
                   "{quantise: {weights: int4}}}",
                   "t.yaml"));
    FAIL() << "128 inputs share a scale, and a matrix has 64";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("128 (int4's default) does not divide the 64 inputs"), std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("set quantise.group: 64"), std::string::npos) << e.what();
  }
}

TEST(Quantise, TrainingRoundsBoth) {
  const Spec spec = quantised("{quantise: {weights: int4}}", "workload: train");
  EXPECT_EQ(spec.strategy.weights, (WeightFormat{.code = WeightCode::int4, .group = 32}));
  EXPECT_EQ(spec.strategy.inputs, (WeightFormat{.code = WeightCode::int8, .group = 32}));
  const auto says = [](std::string_view strategy, std::string_view part) {
    const std::string text = quantise_refusal(strategy, "workload: train");
    EXPECT_NE(text.find(part), std::string::npos) << strategy << ": " << text;
  };
  says("{quantise: {weights: awq}}", "without zero points");
  says("{quantise: {weights: int4, group: channel}}", "training needs a number");
  says("{quantise: {weights: int4, activations: none}}", "rounds weights and inputs");
  says("{precision: fp8, quantise: {weights: int4}}", "not built yet");
}

}  // namespace
}  // namespace orrery
