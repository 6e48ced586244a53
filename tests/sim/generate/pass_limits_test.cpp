#include "sim/generate/pass_limits.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
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

}  // namespace
}  // namespace orrery
