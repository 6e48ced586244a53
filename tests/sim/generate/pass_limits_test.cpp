#include "sim/generate/pass_limits.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/generate/generate.h"

namespace orrery {
namespace {

GenerationReport limits_of(const std::string& generate, const std::string& strategy, std::int64_t gpus) {
  const Spec spec = parse_spec(fmt::format("{{model: llama-3.1-8b, workload: generate, generate: {}, cluster: {{node: "
                                           "dgx-h100, nodes: 1}}, gpus: {}, software: vllm, strategy: {}}}",
                                           generate, gpus, strategy),
                               "t.yaml");
  return predict_generation(spec, profile_for(spec, ""));
}

// The host's time between passes is a share of the period.
TEST(PassLimits, TheHostHasItsShare) {
  Spec spec = parse_spec(
      "{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 32}, "
      "cluster: {node: dgx-h100, nodes: 1}, gpus: 1, software: {profile: vllm, step_us: 50000}}",
      "t.yaml");
  const GenerationReport r = predict_batch(spec, profile_for(spec, ""));
  const GeneratedPass& pass = r.decode[1];
  EXPECT_NEAR(pass.limits.host, 0.05 / pass.period_s, 1e-12);
  EXPECT_GT(pass.limits.host, 0.8);
  EXPECT_TRUE(text_of(pass.limits).starts_with("host between passes"));
}

TEST(PassLimits, SharesSumToTheWhole) {
  for (const auto& [strategy, gpus] : {std::pair("{}", 1), {"{tensor: 4}", 4}, {"{pipeline: 2}", 2}}) {
    const GenerationReport r = limits_of("{batch: 8, input: 512, output: 32}", strategy, gpus);
    for (const GeneratedPass& pass : {r.prefill[0], r.decode[1]}) {
      double sum = 0;
      for_limits(pass.limits, [&](const char*, double share) { sum += share; });
      EXPECT_NEAR(sum, 1, 1e-9) << strategy;
    }
  }
}

// A token of one short sequence waits for weights, of many long ones for their cache; a prompt computes.
TEST(PassLimits, AreWhatTheFieldKnows) {
  const GenerationReport alone = limits_of("{batch: 1, input: 64, output: 32}", "{}", 1);
  EXPECT_GT(alone.decode[1].limits.weights, 0.6);
  EXPECT_TRUE(text_of(alone.decode[1].limits).starts_with("weights"));
  const GenerationReport many = limits_of("{batch: 64, input: 8000, output: 32}", "{}", 1);
  EXPECT_GT(many.decode[1].limits.cache, 0.6);
  EXPECT_GT(many.prefill[0].limits.products, 0.6);
  EXPECT_GT(limits_of("{batch: 8, input: 512, output: 32}", "{tensor: 8}", 8).decode[1].limits.links, 0.05);
}

PassReads reads_of(const char* model, const char* strategy, std::int64_t cached, int batch) {
  Spec spec =
      parse_spec(fmt::format("{{model: {}, workload: generate, generate: {{batch: {}, input: 512, output: 64}}, "
                             "cluster: {{node: dgx-h100, nodes: 1}}, gpus: 4, software: vllm, strategy: {}}}",
                             model, batch, strategy),
                 "t.yaml");
  spec.sequence = 1;
  spec.generation->cached = cached;
  return pass_reads(make_plan(spec));
}

// All weights but the table of embeddings, in the width of the products; 2 d w bytes of every key/value head, layer and
// cached token.
TEST(PassReads, AreTheWeightsOfProductsAndTheCache) {
  constexpr double kEnds = 128256 * 4096.0, kAll = 8.030e9;
  const PassReads wide = reads_of("llama-3.1-8b", "{tensor: 4}", 512, 8);
  EXPECT_NEAR(wide.weights, 2 * (kAll - kEnds) / 4, 1e7);
  EXPECT_DOUBLE_EQ(wide.cache, 8 * 512 * 32 * 2 * 128 * 2 * 2.0);
  const PassReads narrow = reads_of("llama-3.1-8b", "{tensor: 4, precision: fp8}", 512, 8);
  EXPECT_NEAR(narrow.weights, (kAll - 2 * kEnds + 2 * kEnds) / 4, 1e7) << "the output layer stays in 16 bits";
}

TEST(PassReads, FewTokensReadFewExperts) {
  const double all = reads_of("mixtral-8x7b", "{tensor: 4}", 512, 256).weights;
  EXPECT_LT(reads_of("mixtral-8x7b", "{tensor: 4}", 512, 1).weights, 0.4 * all);
}

}  // namespace
}  // namespace orrery
