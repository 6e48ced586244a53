#include "sim/report/report_parts.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec parts_spec(const std::vector<std::string>& overrides = {}) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, "
      "strategy: {tensor: 2, pipeline: 2, global_batch: 16, sharding: zero1}}",
      "spec.yaml", overrides);
}

TEST(ReportParts, SayTheStrategyAndTheBatch) {
  EXPECT_EQ(strategy_text(parts_spec()), "tensor 2, pipeline 2, data 2, 1f1b, sharding zero1, bf16, megatron-core");
  EXPECT_EQ(batch_text(parts_spec()), "8 micro-batches of 1 x 1024 tokens a replica, 16 sequences a step");
}

TEST(ReportParts, BarsAreAColumnOfTheirOwn) {
  const Report r = predict(parts_spec()).report;
  EXPECT_EQ(time_table(r).columns.size(), 3U);
  const Table barred = time_table(r, 40);
  ASSERT_EQ(barred.columns.size(), 4U);
  EXPECT_EQ(barred.rows.size(), time_table(r).rows.size());
  for (const auto& row : barred.rows) EXPECT_EQ(row.size(), 4U);
}

// The times of both models of a step sum to the step's, and the frozen one has no update and nothing to recompute.
TEST(ReportParts, AStepOfTwoModelsSaysWhoseTimeItIs) {
  const Spec spec = parse_spec(
      "{model: gpt2, workload: distill, teacher: gpt2-medium, distill: {divergence: 1}, sequence: 1024, cluster: "
      "{node: dgx-a100, nodes: 1}, software: megatron-core, strategy: {tensor: 2, pipeline: 2, global_batch: 16, "
      "recompute: full, sharding: zero1}}",
      "spec.yaml");
  const Report r = predict(spec).report;
  ASSERT_EQ(r.models.size(), 2U);
  EXPECT_EQ(r.models[0].name, "student");
  EXPECT_EQ(r.models[1].name, "teacher");
  for (int k = 0; k < kTimeKinds; ++k)
    EXPECT_NEAR(r.models[0].time_s[k] + r.models[1].time_s[k], r.time_s[k], 1e-12) << k;
  EXPECT_GT(r.models[1].time_s[static_cast<int>(TimeKind::compute)], 0);
  EXPECT_EQ(r.models[1].time_s[static_cast<int>(TimeKind::optimizer)], 0);
  EXPECT_EQ(r.models[1].time_s[static_cast<int>(TimeKind::recompute)], 0);
  const std::string text = models_text(r);
  EXPECT_TRUE(text.starts_with("the student takes ")) << text;
  EXPECT_NE(text.find(" % of a step ("), std::string::npos) << text;
  EXPECT_NE(text.find(", the teacher "), std::string::npos) << text;
  EXPECT_EQ(time_table(r).columns.size(), 5U);
  EXPECT_EQ(models_text(predict(parts_spec()).report), "");
}

// The fullest class is that with the most memory of the device, and the lines and the table are about it.
TEST(ReportParts, TheFullestRankIsTheOneThatIsToldAbout) {
  Report r = predict(parts_spec()).report;
  r.memory.ranks[1].device_peak = r.memory.ranks[0].device_peak + 1;
  ASSERT_EQ(fullest_rank(r.memory), &r.memory.ranks[1]);
  EXPECT_TRUE(peak_lines(r).front().starts_with("stage 1 peaks at "));
  EXPECT_EQ(memory_table(r).rows.size(), 2U);
  EXPECT_EQ(fullest_rank({}), nullptr);
  EXPECT_TRUE(peak_lines({}).empty());
}

TEST(ReportParts, SayWhetherItFits) {
  EXPECT_TRUE(fit_text(predict(parts_spec()).report).starts_with("fits: "));
  EXPECT_TRUE(fit_text(predict(parts_spec({"model=llama-3.1-70b"})).report).starts_with("DOES NOT FIT: "));
}

TEST(ReportParts, ExposedTimeBeyondTheTransferIsExplained) {
  Report r;
  r.communication = {{"tensor", "all_reduce", "nvlink", "ring", 1, 8, 1, 0.5}};
  EXPECT_EQ(exposed_note(r), "");
  EXPECT_EQ(communication_table(r).rows.size(), 1U);
  r.communication[0].exposed_s = 2;
  EXPECT_FALSE(exposed_note(r).empty());
  r.weights = {{"stage 0", 2, 1}};
  EXPECT_EQ(weights_table(r).rows[0], (std::vector<std::string>{"stage 0", "2", "1"}));
}

}  // namespace
}  // namespace orrery
