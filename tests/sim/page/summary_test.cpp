#include "sim/page/summary.h"

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

Report small_report(const std::vector<std::string>& overrides = {}) {
  return predict(
             parse_spec("{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, "
                        "strategy: {tensor: 2, pipeline: 2, global_batch: 16}}",
                        "spec.yaml", overrides))
      .report;
}

TEST(StepSummary, CardsHaveTheReportsOwnValues) {
  const Report r = small_report();
  const std::string cards = step_cards(r, "strategies.0.report.");
  EXPECT_TRUE(is_closed(cards));
  EXPECT_TRUE(has(cards, fmt::format("id=\"strategies.0.report.step_time_s\" value=\"{}\"", r.step_time_s)));
  EXPECT_TRUE(has(cards, fmt::format("id=\"strategies.0.report.mfu\" value=\"{}\"", r.mfu)));
  EXPECT_TRUE(has(cards, "tightest: stage 1, 4 ranks"));
  EXPECT_TRUE(has(cards, "card good"));
  EXPECT_TRUE(has(step_cards(small_report({"model=llama-3.1-70b"})), "card bad"));
}

TEST(StepSummary, CardsSayHowClustersDifferWhereTheSpecAsks) {
  Report r = small_report();
  EXPECT_FALSE(has(step_cards(r), "GPUs differ"));
  r.variation = StepQuantiles{r.step_time_s, 1.1 * r.step_time_s};
  EXPECT_TRUE(has(step_cards(r), "GPUs differ"));
  EXPECT_TRUE(has(step_cards(r), "on 95 %"));
  EXPECT_FALSE(has(step_cards(r), "hashes choose uplinks"));
  r.hashes = r.variation;
  EXPECT_TRUE(has(step_cards(r), "hashes choose uplinks"));
}

// The parts that bar and table show sum to the step.
TEST(StepSummary, PartsOfTheStepSumToIt) {
  const Report r = small_report();
  const std::string table = time_markup(r);
  EXPECT_TRUE(is_closed(table) && is_closed(time_bar(r)));
  double sum = 0;
  for (std::size_t at = table.find("value=\""); at != std::string::npos; at = table.find("value=\"", at + 1))
    sum += std::stod(table.substr(at + 7));
  EXPECT_NEAR(sum, r.step_time_s, 0.01 * r.step_time_s);
  EXPECT_TRUE(has(table, "kernels of forward and backward"));
}

TEST(StepSummary, AListIsNumberedAndEscaped) {
  EXPECT_EQ(count(numbered({"a < b", "c"}), "<li>"), 2);
  EXPECT_TRUE(has(numbered({"a < b"}), "a &lt; b"));
  EXPECT_EQ(numbered({}), "");
  EXPECT_TRUE(has(alarm_markup("<b>"), "&lt;b&gt;"));
}

}  // namespace
}  // namespace orrery
