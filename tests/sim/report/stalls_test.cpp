// The second state of steps whose hosts wait in every micro-batch.
#include "sim/report/stalls.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec spec_with(const std::string& strategy, const std::string& software = "nanotron") {
  return test::spec_of(test::kSmall, strategy, 32, "profile: " + software);
}

// A stage waits once a micro-batch for each neighbour; from three stages on those in the middle have two.
TEST(Stalls, AreOneWaitForEachNeighbourAndMicroBatch) {
  const auto longer = [](const std::string& strategy) {
    const auto stalled = stalled_step(spec_with(strategy), 1.0);
    return stalled ? stalled->step_time - 1 : 0;
  };
  EXPECT_NEAR(longer("data: 2, pipeline: 2, global_batch: 8"), 4 * 0.55, 1e-9);
  EXPECT_NEAR(longer("data: 2, pipeline: 4, global_batch: 8"), 2 * 4 * 0.55, 1e-9);
  EXPECT_NEAR(longer("data: 2, pipeline: 2, global_batch: 8, micro_batch: 2"), 2 * 0.55, 1e-9);
}

// No run without a pipeline stalled, and of another stack none is known to.
TEST(Stalls, AreOfAPipelineWithDataRanksAndOfOneStack) {
  EXPECT_FALSE(stalled_step(spec_with("data: 4, global_batch: 8"), 1));
  EXPECT_FALSE(stalled_step(spec_with("data: 1, pipeline: 4, global_batch: 8"), 1));
  EXPECT_FALSE(stalled_step(spec_with("data: 2, pipeline: 2, global_batch: 8", "megatron-core"), 1));
}

TEST(Stalls, AreARemarkOfTheReport) {
  const auto remarks = [](const std::string& strategy) {
    return std::ranges::count_if(predict(spec_with(strategy)).report.remarks, [](const std::string& line) {
      return line.starts_with("stalls: in 50 of 467 published runs of nanotron");
    });
  };
  EXPECT_EQ(remarks("data: 2, pipeline: 2, global_batch: 8"), 1);
  EXPECT_EQ(remarks("data: 4, global_batch: 8"), 0);
}

// Stalled hosts see collectives end before they allocate, so that these hold nothing longer than they run.
TEST(Stalls, HoldNoTensorsOfCollectives) {
  const Spec spec =
      test::spec_of("name: small, layers: 4, hidden: 1024, heads: 8, vocab: 4096, feed_forward: 4096",
                    "data: 2, tensor: 2, pipeline: 2, global_batch: 16, micro_batch: 4", 512, "profile: nanotron");
  const MemoryReport memory = predict(spec).report.memory;
  ASSERT_EQ(memory.stalled.size(), memory.ranks.size());
  for (std::size_t i = 0; i < memory.ranks.size(); ++i)
    EXPECT_LE(memory.stalled[i].memory.peak_reserved, memory.ranks[i].memory.peak_reserved);
  EXPECT_LT(memory.stalled[0].memory.peak_reserved, memory.ranks[0].memory.peak_reserved);
  EXPECT_EQ(nlohmann::json::parse(to_json(predict(spec).report)).at("memory").at("stalled_peak_reserved_bytes"),
            memory.stalled[0].memory.peak_reserved);
  EXPECT_TRUE(predict(spec_with("data: 4, global_batch: 8")).report.memory.stalled.empty());
}

}  // namespace
}  // namespace orrery
