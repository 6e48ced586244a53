#include "sim/advice/machines.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"

namespace orrery {
namespace {

Machine machine_of(const std::string& cluster, const PriceList& prices, double tokens) {
  const std::string text = "model: gpt2\nsequence: 1024\ncluster: " + cluster +
                           "\nstrategy: {tensor: 1, pipeline: 1, context: 1, global_batch: 16, micro_batch: 1, "
                           "recompute: none, sharding: zero1, sequence_parallel: false}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 4);
  return make_machine(space, search(space, profile_for(space.base(), ""), {}), prices, tokens);
}

// A node's price is that of a node with as many GPUs, and of no other.
TEST(SearchMachines, PriceOfANodeIsOfItsOwnSize) {
  const PriceList prices = load_prices({});
  EXPECT_EQ(machine_of("{node: dgx-h100, nodes: 2}", prices, 0).cost.purchase_usd, 270000);
  EXPECT_FALSE(machine_of("{node: dgx-h100, nodes: 2, gpus_per_node: 4, nics: 4}", prices, 0).cost.purchase_usd);
}

TEST(SearchMachines, WhatIsNotKnownIsNoFigure) {
  const PriceList prices = load_prices({});
  const Machine known = machine_of("{node: dgx-h100, nodes: 1}", prices, 1e9);
  EXPECT_TRUE(known.cost.days && known.cost.cloud_usd && known.cost.power_kW && known.cost.energy_MWh);
  const Machine parts = machine_of("{gpu: l40s, gpus_per_node: 4, nodes: 1, nic_Gbps: 100}", prices, 1e9);
  EXPECT_TRUE(parts.cost.days);
  EXPECT_FALSE(parts.cost.cloud_usd || parts.cost.usd_per_Mtoken || parts.cost.purchase_usd || parts.cost.power_kW ||
               parts.cost.energy_MWh || parts.cost.owned_usd);
  EXPECT_FALSE(machine_of("{node: dgx-h100, nodes: 1}", prices, 0).cost.days);
}

TEST(SearchMachines, SayWhatOfANetworkHasNoPrice) {
  const PriceList prices = load_prices({});
  const auto text_of_network = [&](const std::string& network) {
    const Machine m = machine_of("{node: dgx-h100, nodes: 2, network: " + network + "}", prices, 0);
    return machines_text({m}, prices, {});
  };
  const std::string tree = text_of_network("{kind: fat-tree, leaf: {nodes: 1}}");
  EXPECT_NE(tree.find("switches in 1 level and"), std::string::npos) << tree;
  EXPECT_NE(tree.find("kW of links alone (switches' power unknown)"), std::string::npos) << tree;
  EXPECT_EQ(tree.find("between sites"), std::string::npos) << tree;
  const std::string sites = text_of_network("{sites: {nodes: 1, Gbps: 800, ms: 1}}");
  EXPECT_NE(sites.find("links between sites are not priced"), std::string::npos) << sites;
}

// From one node to 131,072 GPUs, failures take ever more of the time, and the run still gets shorter.
TEST(SearchMachines, PlansFromOneNodeToTheLargestMachines) {
  const PriceList prices = load_prices({});
  std::vector<Machine> machines;
  for (const std::int64_t gpus : {8, 4096, 131072}) {
    const std::vector<std::string> few = {"search.tensor=[1,8]",     "search.context=[2,4]",
                                          "search.pipeline=[1,8]",   "search.micro_batch=[1]",
                                          "search.sharding=[zero1]", "search.recompute=[none]"};
    const Space space(load_open_spec(ORRERY_SOURCE_DIR "/examples/search-8-to-131072-gpus.yaml", few), gpus);
    machines.push_back(make_machine(space, search(space, profile_for(space.base(), ""), {}), prices, 15e12));
  }
  for (std::size_t i = 0; i < machines.size(); ++i) {
    ASSERT_EQ(machines[i].excluded, "");
    EXPECT_NEAR(machines[i].cost.failures.between_failures * static_cast<double>(machines[i].nodes),
                kNodeHoursBetweenFailures * 3600, 1);
    if (i == 0) continue;
    EXPECT_LT(machines[i].cost.goodput, machines[i - 1].cost.goodput);
    EXPECT_LT(*machines[i].cost.days, *machines[i - 1].cost.days);
  }
  EXPECT_GT(machines.front().cost.goodput, 0.99);
  EXPECT_LT(machines.back().cost.goodput, 0.9);
}

}  // namespace
}  // namespace orrery
