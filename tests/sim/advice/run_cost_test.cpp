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

PriceList prices(const Price& row) {
  return {.date = "2026-01", .rows = {row}, .usd_per_kWh = 0.1, .write_off_years = 4};
}

TEST(RunCost, IsTokensOverRateTimesRent) {
  const Spec spec = sixteen_gpus();
  const PriceList list = prices({.gpu = "h100-sxm", .cloud = 2.5, .purchase = 300'000, .purchase_gpus = 8});
  const RunCost cost = run_cost(spec, 8.64e9, 1e5, 1, list);  // a day without failures
  ASSERT_TRUE(cost.days && cost.cloud_usd && cost.usd_per_Mtoken && cost.energy_MWh && cost.owned_usd);
  EXPECT_LE(cost.goodput, 1);
  EXPECT_NEAR(*cost.days * cost.goodput, 1, 1e-9);
  EXPECT_NEAR(*cost.cloud_usd, *cost.days * 24 * 16 * 2.5, 1e-6);
  EXPECT_NEAR(*cost.usd_per_Mtoken * 8640, *cost.cloud_usd, 1e-6);
  EXPECT_NEAR(*cost.energy_MWh, *cost.days * 24 * 2 * spec.cluster.power_kW / 1000, 1e-9);
  EXPECT_EQ(cost.purchase_usd, 600'000);
  // One of 4 x 365.25 days of 600,000 $, and 100 $ a MWh.
  EXPECT_NEAR(*cost.owned_usd, *cost.days * 600'000 / 1461 + 100 * *cost.energy_MWh, 1e-6);
}

// Price, power, energy and an owner's cost hold the network alike.
TEST(RunCost, IsOfNodesAndNetwork) {
  Spec spec = sixteen_gpus();
  PriceList list = prices({.gpu = "h100-sxm", .purchase = 300'000, .purchase_gpus = 8});
  list.network = {
      .ports = 64, .port_Gbps = 400, .switch_usd = 36'000, .switch_kW = 1, .link_usd = 1'280, .link_kW = .01};
  spec.cluster.network = Network{.kind = NetworkKind::fat_tree, .leaf_nodes = 2, .leaf_uplinks = 16, .leaf_Gbps = 400};
  const RunCost cost = run_cost(spec, 8.64e9, 1e5, 1, list);
  ASSERT_TRUE(cost.purchase_usd && cost.power_kW && cost.energy_MWh && cost.owned_usd);
  EXPECT_EQ(*cost.purchase_usd, 600'000 + 36'000 + 16 * 1'280);
  EXPECT_NEAR(*cost.power_kW, 2 * spec.cluster.power_kW + 1 + 0.16, 1e-9);
  EXPECT_NEAR(*cost.energy_MWh, *cost.days * 24 * *cost.power_kW / 1000, 1e-9);
  EXPECT_NEAR(*cost.owned_usd, *cost.days * *cost.purchase_usd / 1461 + 100 * *cost.energy_MWh, 1e-6);
  EXPECT_EQ(bought(spec, list).purchase_usd, cost.purchase_usd) << "also where no strategy fits";
}

TEST(RunCost, LeavesOutWhatIsNotKnown) {
  const RunCost cost = run_cost(sixteen_gpus(), 0, 1e5, 1, {});
  EXPECT_FALSE(cost.days || cost.cloud_usd || cost.usd_per_Mtoken || cost.energy_MWh || cost.owned_usd);
  EXPECT_TRUE(run_cost(sixteen_gpus(), 0, 1e5, 1, prices({.gpu = "h100-sxm", .cloud = 2.5})).usd_per_Mtoken);
  const RunCost rented = run_cost(sixteen_gpus(), 1e9, 1e5, 1, prices({.gpu = "h100-sxm", .cloud = 2.5}));
  EXPECT_TRUE(rented.cloud_usd);
  EXPECT_FALSE(rented.owned_usd);
}

}  // namespace
}  // namespace orrery
