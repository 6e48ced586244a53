#include "sim/advice/targets.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Network on_b200(const std::string& network) {
  SearchCommandOptions options;
  options.text = {.path = "targets.yaml",
                  .text = "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 8, network: " + network +
                          "}\nstrategy: {global_batch: 64}\n"};
  options.clusters = {"dgx-b300"};
  options.gpus = {64};
  return *targets_of(options, {}).front().open.spec.cluster.network;
}

// Uplinks of a rate that the spec gives keep it; others are as fast as the NICs, here of 800 Gb/s.
TEST(SearchTargets, KeepTheRatesOfLinksThatAreGiven) {
  EXPECT_EQ(on_b200("{leaf: {nodes: 2, uplinks: 2, Gbps: 50}}").leaf_Gbps, 50);
  EXPECT_EQ(on_b200("{leaf: {nodes: 2, uplinks: 2}}").leaf_Gbps, 800);
  EXPECT_EQ(on_b200("{kind: torus, torus: {shape: [2, 4], Gbps: 100}}").torus.Gbps, 100);
  EXPECT_EQ(on_b200("{kind: dragonfly, leaf: {nodes: 1}, groups: {leaves: 2, links: 2, Gbps: 100}}").groups.Gbps, 100);
}

TEST(SearchTargets, KeepFaultsAndFlaps) {
  const Network n = on_b200(
      "{leaf: {nodes: 2, uplinks: 2, Gbps: 100}, faults: [{leaf: 1, link: 0, Gbps: 0}, {leaf: 1, link: 1, Gbps: 40, "
      "down: [1, 2]}], flaps: {every_s: 3600, down_s: 2}}");
  EXPECT_EQ(n.flap_every_s, 3600);
  ASSERT_EQ(n.faults.size(), 1);
  EXPECT_EQ(n.faults[0].link, 0);
  EXPECT_EQ(n.faults[0].Gbps, 0);
  ASSERT_EQ(n.timed_faults.size(), 1);
  EXPECT_EQ(n.timed_faults[0].fault.Gbps, 40);
}

}  // namespace
}  // namespace orrery
