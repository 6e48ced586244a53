#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

TEST(Ibnetdiscover, TellsRailsByHostsWithOneNicOnEachLeaf) {
  const ClusterFacts facts = ibnetdiscover_links(samples::kIbnetdiscover, "ib.txt");
  EXPECT_EQ(facts.nodes, 2);
  EXPECT_EQ(facts.nics, 2);
  EXPECT_EQ(facts.kind, NetworkKind::rails);
  EXPECT_EQ(facts.leaf_nodes, 2);
  EXPECT_EQ(facts.leaf_uplinks, 2);
  EXPECT_EQ(facts.uplink_Gbps, 400);
  EXPECT_EQ(facts.nic_Gbps, 400);
}

TEST(Ibnetdiscover, TellsAFatTreeByHostsWithAllNicsOnOneLeaf) {
  const ClusterFacts facts = ibnetdiscover_links(
      "Switch\t36 \"S-01\"\t# \"leaf\" lid 1\n[1]\t\"H-0a\"[1](a1)\t# \"a mlx5_0\" lid 2 4xHDR\n"
      "[2]\t\"H-0b\"[1](a2)\t# \"a mlx5_1\" lid 3 2xHDR\n[3]\t\"S-02\"[1]\t# \"spine\" lid 4 12xEDR\n",
      "ib.txt");
  EXPECT_EQ(facts.kind, NetworkKind::fat_tree);
  EXPECT_EQ(facts.nics, 2);
  EXPECT_EQ(facts.nic_Gbps, 200);
  EXPECT_EQ(facts.uplink_Gbps, 300);
  EXPECT_THROW(ibnetdiscover_links("Switch 36\n", "ib.txt"), Error);
}

// A full leaf, one with few hosts and uplinks, and a server with two NICs on one leaf.
TEST(Ibnetdiscover, TakesTheNumbersOfOneLeafAndOfMostHosts) {
  std::string text = "Switch\t64 \"S-01\"\t# \"leaf1\" lid 1\n";
  const auto link = [](int port, const std::string& peer, const std::string& name) {
    return fmt::format("[{}]\t\"{}\"[1]\t# \"{}\" lid 2 4xNDR\n", port, peer, name);
  };
  for (int i = 0; i < 8; ++i) text += link(i, fmt::format("H-{:02}", i), fmt::format("n{} mlx5_0", i));
  for (int i = 0; i < 8; ++i) text += link(20 + i, "S-99", "spine");
  text += "\nSwitch\t64 \"S-02\"\t# \"leaf2\" lid 1\n";
  for (int i = 0; i < 3; ++i) text += link(i, fmt::format("H-1{}", i), fmt::format("n{} mlx5_1", i));
  text += link(8, "H-20", "store mlx5_0") + link(9, "H-21", "store mlx5_1") + link(20, "S-99", "spine");
  const ClusterFacts facts = ibnetdiscover_links(text, "ib.txt");
  EXPECT_EQ(facts.leaf_nodes, 8);
  EXPECT_EQ(facts.leaf_uplinks, 8);
  EXPECT_EQ(facts.nics, 1);
  EXPECT_EQ(facts.remarks.size(), 2U);
}

}  // namespace
}  // namespace orrery
