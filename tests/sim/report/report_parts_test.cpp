#include "sim/report/report_parts.h"

#include <numeric>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec gpt_spec(const std::string& nodes) {
  return parse_spec(
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: " + nodes +
          "}\nsoftware: megatron-core\nstrategy: {tensor: 8, pipeline: 8, global_batch: 64, sharding: zero1}\n",
      "t.yaml");
}

TEST(ReportParts, SayWhatTheStrategyIs) {
  const Spec spec = gpt_spec("16");
  EXPECT_EQ(batch_text(spec), "32 micro-batches of 1 x 2048 tokens a replica, 64 sequences a step");
  for (const char* part : {"tensor 8", "pipeline 8", "data 2", "zero1", "bf16", "megatron-core"})
    EXPECT_NE(strategy_text(spec).find(part), std::string::npos) << part;
}

TEST(ReportParts, SharesOfTheTimeAddUp) {
  const Spec spec = gpt_spec("16");
  const Report report = predict_report(spec, profile_for(spec, ""));
  const Table table = time_table(report);
  double seconds = 0, share = 0;
  for (const std::vector<std::string>& row : table.rows) {
    seconds += std::stod(row[1]);
    share += std::stod(row[2]);
  }
  EXPECT_NEAR(seconds / report.step_time_s, 1, 0.01);
  EXPECT_NEAR(share, 100, 0.5);
  EXPECT_EQ(time_table(report, 20).columns.size(), table.columns.size() + 1);
}

TEST(ReportParts, SayByHowMuchAStepFits) {
  const Spec roomy = gpt_spec("16");
  const Report fits = predict_report(roomy, profile_for(roomy, ""));
  EXPECT_EQ(fits.memory.fits, fit_text(fits).starts_with("fits: ")) << fit_text(fits);
  Spec small = roomy;
  small.cluster.gpu.memory_bytes /= 8;
  const Report lacks = predict_report(small, profile_for(small, ""));
  EXPECT_TRUE(fit_text(lacks).starts_with("DOES NOT FIT:")) << fit_text(lacks);
  ASSERT_NE(fullest_rank(fits.memory), nullptr);
  for (const RankMemory& rank : fits.memory.ranks) EXPECT_LE(rank.memory.peak, fullest_rank(fits.memory)->memory.peak);
  EXPECT_EQ(memory_table(fits).rows.size(), fits.memory.ranks.size());
  EXPECT_FALSE(peak_lines(fits).empty());
}

TEST(ReportParts, ListEveryTransfer) {
  const Spec spec = gpt_spec("16");
  const Report report = predict_report(spec, profile_for(spec, ""));
  EXPECT_EQ(communication_table(report).rows.size(), report.communication.size());
  EXPECT_TRUE(weights_table(report).rows.empty());
}

}  // namespace
}  // namespace orrery
