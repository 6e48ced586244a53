#include "sim/report/link_use.h"

#include <map>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/report/link_load.h"

namespace orrery {
namespace {

// The mean of a link's load over time is its use, and both name the same links.
TEST(LinkUses, AreTheMeansOfLoads) {
  const Spec spec = parse_spec(
      "{model: gpt3-175b, sequence: 2048, cluster: {node: dgx-a100, nodes: 16, network: {leaf: {nodes: 2, uplinks: "
      "1}}}, strategy: {tensor: 8, pipeline: 4, data: 4, sharding: zero1, micro_batch: 1, global_batch: 32}}",
      "uses.yaml");
  const Prediction p = predict(spec);
  std::map<std::string, double> means;
  for (const LinkLoad& load : link_loads(p.plan, p.costs.timing, p.trace, p.cluster)) means[load.name] = load.mean;
  ASSERT_EQ(p.report.links.size(), 3u);
  for (const LinkUseRow& row : p.report.links) {
    ASSERT_TRUE(means.contains(row.link)) << row.link;
    EXPECT_NEAR(row.share, means[row.link], 1e-3 * row.share) << row.link;
  }
  EXPECT_GE(p.report.links[0].share, p.report.links[1].share);
}

TEST(LinkUses, OfAStepWithoutTransfersAreNone) {
  const Spec spec = parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {gpu: h100-sxm, nodes: 1, gpus_per_node: 1}, strategy: {global_batch: "
      "1}}",
      "alone.yaml");
  EXPECT_TRUE(predict(spec).report.links.empty());
}

}  // namespace
}  // namespace orrery
