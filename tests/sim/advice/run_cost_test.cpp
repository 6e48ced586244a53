#include "sim/advice/run_cost.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec sixteen_gpus() {
  return parse_spec(
      "model: llama-3.1-8b\nsequence: 4096\ncluster: {node: dgx-h100, nodes: 2}\nstrategy: {data: 16, global_batch: "
      "64, "
      "sharding: fsdp}\n",
      "t.yaml");
}

TEST(RunCost, IsTokensOverRateTimesRent) {
  const Spec spec = sixteen_gpus();
  const RunCost cost = run_cost(spec, 8.64e9, 1e5, 1, 2.5);  // a day without failures
  ASSERT_TRUE(cost.days && cost.cloud_usd && cost.usd_per_Mtoken && cost.energy_MWh);
  EXPECT_LE(cost.goodput, 1);
  EXPECT_NEAR(*cost.days * cost.goodput, 1, 1e-9);
  EXPECT_NEAR(*cost.cloud_usd, *cost.days * 24 * 16 * 2.5, 1e-6);
  EXPECT_NEAR(*cost.usd_per_Mtoken * 8640, *cost.cloud_usd, 1e-6);
  EXPECT_NEAR(*cost.energy_MWh, *cost.days * 24 * 2 * spec.cluster.power_kW / 1000, 1e-9);
}

TEST(RunCost, LeavesOutWhatIsNotKnown) {
  const RunCost cost = run_cost(sixteen_gpus(), 0, 1e5, 1, std::nullopt);
  EXPECT_FALSE(cost.days || cost.cloud_usd || cost.usd_per_Mtoken || cost.energy_MWh);
  EXPECT_TRUE(run_cost(sixteen_gpus(), 0, 1e5, 1, 2.5).usd_per_Mtoken);
}

}  // namespace
}  // namespace orrery
