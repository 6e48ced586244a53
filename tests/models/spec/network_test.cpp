#include "models/spec/network.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

TEST(Network, NamesItsKindsAndRoutings) {
  for (const NetworkKind k : {NetworkKind::fat_tree, NetworkKind::rails}) EXPECT_EQ(find_network_kind(name_of(k)), k);
  for (const Routing r : {Routing::adaptive, Routing::ecmp, Routing::d_mod_k}) EXPECT_EQ(find_routing(name_of(r)), r);
  EXPECT_THROW(find_routing("ecpm"), Error);
}

TEST(Network, NamesWhatAFaultStrikes) {
  EXPECT_EQ(name_of(LinkFault{.node = 17, .nic = 3}), "NIC 3 of node 17");
  EXPECT_EQ(name_of(LinkFault{.leaf = 3, .link = 5}), "uplink 5 of leaf 3");
  EXPECT_EQ(name_of(LinkFault{.leaf = 3, .uplinks = 5}), "leaf 3");
  EXPECT_EQ(name_of(LinkFault{.plane = 1}), "plane 1");
}

}  // namespace
}  // namespace orrery
