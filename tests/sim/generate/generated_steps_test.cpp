#include "sim/generate/generated_steps.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "sim/generate/generate.h"

namespace orrery {
namespace {

Spec steps_spec(std::string_view generate, std::string_view strategy, std::int64_t gpus) {
  return parse_spec(fmt::format("{{model: llama-3.1-8b, workload: generate, generate: {}, cluster: {{node: dgx-h100, "
                                "nodes: 1}}, gpus: {}, software: vllm, strategy: {}}}",
                                generate, gpus, strategy),
                    "t.yaml");
}

// Without stages a plan of several passes takes the sum of the passes; only the host runs ahead from pass to pass.
TEST(GeneratedSteps, PassesFollowEachOther) {
  const Spec spec = steps_spec("{batch: 8, input: 512, output: 3, chunk: 256}", "{tensor: 2}", 2);
  const GenerationReport report = predict_generation(spec, profile_for(spec, ""));
  double sum = 0;
  for (const GeneratedPass& pass : report.prefill) sum += pass.period_s;
  sum += report.decode.front().period_s + report.decode.back().period_s;
  const Prediction all = predict_passes(spec, profile_for(spec, ""), shown_passes(spec));
  EXPECT_NEAR(all.report.step_time_s / sum, 1, 0.02);
  EXPECT_LE(all.report.step_time_s, sum);
  EXPECT_EQ(all.report.memory.peak, report.prefill[1].report.memory.peak);
}

// A short prompt waits for its launches in the trace as in the report.
TEST(GeneratedSteps, PromptsAreLaunched) {
  const Spec spec = steps_spec("{batch: 1, input: 64, output: 3}", "{}", 1);
  const GenerationReport report = predict_generation(spec, profile_for(spec, ""));
  const Prediction all = predict_passes(spec, profile_for(spec, ""), shown_passes(spec));
  EXPECT_GT(report.first_token_s, report.token_s * 2);
  EXPECT_NEAR(all.report.step_time_s / report.total_s, 1, 0.03);
}

// With stages, passes follow each other as the period of a pass says.
TEST(GeneratedSteps, StagesDoNotEmptyBetweenPasses) {
  const Spec spec = steps_spec("{batch: 32, input: 64, output: 40}", "{pipeline: 4}", 4);
  const GenerationReport report = predict_generation(spec, profile_for(spec, ""));
  const Prediction all = predict_passes(spec, profile_for(spec, ""), generation_passes(*spec.generation));
  const double decode = all.report.step_time_s - report.first_token_s;
  EXPECT_NEAR(decode / (39 * report.token_s), 1, 0.1);
}

// The trace has the host's time between passes, as the report has it.
TEST(GeneratedSteps, TheHostPreparesEveryPass) {
  const auto time = [](std::int64_t us, std::string_view strategy, std::int64_t gpus) {
    Spec spec = steps_spec("{batch: 8, input: 512, output: 5}", strategy, gpus);
    spec.software.host.step_us = static_cast<double>(us);
    return predict_passes(spec, profile_for(spec, ""), shown_passes(spec)).report.step_time_s;
  };
  EXPECT_NEAR(time(50'000, "{tensor: 2}", 2) - time(0, "{tensor: 2}", 2), 5 * 0.05, 0.001);
  // The first stage prepares a pass while the second still computes the one before.
  EXPECT_NEAR(time(50'000, "{pipeline: 2}", 2) - time(0, "{pipeline: 2}", 2), 5 * 0.05, 0.03);
}

TEST(GeneratedSteps, LongTextsAreCut) {
  const Spec spec = steps_spec("{batch: 8, input: 512, output: 4000}", "{}", 1);
  const std::vector<GenerationPass> shown = shown_passes(spec);
  EXPECT_GT(shown.size(), 3U);
  EXPECT_LT(shown.size(), 4000U);
  EXPECT_EQ(cut_remark(spec, shown), fmt::format("the timeline has the first {} of 4000 passes", shown.size()));
  const std::vector<std::string> names = names_of(spec, shown);
  EXPECT_EQ(names[0], "prefill");
  EXPECT_EQ(names[2], "decode 2");
}

}  // namespace
}  // namespace orrery
