#include "models/cost/nccl/switches.h"

#include <string>

#include <gtest/gtest.h>

namespace orrery {
namespace {

Cluster eight_nodes() {
  Cluster c;
  c.gpu.nvlink_GBps = 450;
  c.gpu.pcie_GBps = 63;
  c.nodes = 8;
  c.nic_Gbps = 400;
  c.nvlink_domain = 8;
  return c;
}

// Rails that are not joined are reached over NVLink.
TEST(Switches, ChangeRailsInTheNode) {
  Cluster c = eight_nodes();
  c.network = Network{.kind = NetworkKind::rail_only, .leaf_nodes = 8, .leaf_uplinks = 8, .leaf_Gbps = 400};
  std::string way;
  for (const Hop& hop : route(c, 0, 9).hops) way += to_string(hop.to) + ' ';
  EXPECT_TRUE(way == "nvswitch 0 gpu 1 pcie_switch 0.1 nic 0.1 leaf 1 nic 1.1 pcie_switch 1.1 gpu 9 " ||
              way == "pcie_switch 0.0 nic 0.0 leaf 0 nic 1.0 pcie_switch 1.0 gpu 8 nvswitch 1 gpu 9 ")
      << way;
}

// A slow NIC is named, or drawn; a plane that is down takes its part, at both ends.
TEST(Switches, NicsHaveTheRateThatFaultsLeave) {
  Cluster c = eight_nodes();
  const NicsOfGpu nic = {.node = 2, .index = 3, .count = 8};
  EXPECT_EQ(nic_GBps(c, nic, 0), 50);
  c.network = Network{.planes = 2, .faults = {{.node = 2, .Gbps = 100}, {.node = 5, .plane = 1}}};
  EXPECT_EQ(nic_GBps(c, nic, 0), 12.5);
  EXPECT_EQ(nic_GBps(c, nic, 5), 6.25);
  c.network = Network{.efficiency = .5, .fault_share = 1, .fault_Gbps = 200};
  EXPECT_EQ(nic_GBps(c, nic, 0), 12.5);
  c.network.reset();
  c.nics = 16;
  EXPECT_EQ(nic_GBps(c, nic, 0), 100) << "two NICs of one GPU";
}

TEST(Switches, LinksAreThoseBetweenDifferentOnes) {
  Cluster c = eight_nodes();
  const NicsOfGpu a = {.node = 0, .index = 0, .count = 8}, b = {.node = 4, .index = 0, .count = 8};
  EXPECT_TRUE(links_between(c, a, b).empty());
  c.network = Network{.leaf_nodes = 8, .leaf_uplinks = 8, .leaf_Gbps = 400};
  EXPECT_TRUE(links_between(c, a, b).empty());
  c.network->leaf_nodes = 4;
  c.network->load = .5;
  const auto links = links_between(c, a, b);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].GBps, 50) << "8 links of 50 GB/s, half of them taken, for 4 NICs";
  EXPECT_EQ(to_string(links[0].from), "leaf 0");
  EXPECT_EQ(to_string(links[1].to), "leaf 8");
}

}  // namespace
}  // namespace orrery
