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

}  // namespace
}  // namespace orrery
