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

// Faults of one leaf do not touch others, and a link that is named twice is slow once.
TEST(Network, CountsTheRateOfALeafsUplinksThatWork) {
  Network n;
  n.leaf_uplinks = 4;
  n.leaf_Gbps = 400;
  n.faults = {{.leaf = 2, .uplinks = 1}, {.leaf = 0, .Gbps = 100, .link = 1}, {.leaf = 0, .Gbps = 200, .link = 1}};
  EXPECT_EQ(working_uplinks(n, 0), 3.25);
  EXPECT_EQ(working_uplinks(n, 1), 4);
  EXPECT_EQ(working_uplinks(n, 2), 1);
  n.faults.push_back({.leaf = 0, .uplinks = 1});
  EXPECT_EQ(working_uplinks(n, 0), .25) << "the one that works is the slow one";
  n.faults.push_back({.leaf = 0, .uplinks = 2});
  n.faults.push_back({.leaf = 2, .Gbps = 0, .link = 3});
  EXPECT_EQ(working_uplinks(n, 2), 0);
}

}  // namespace
}  // namespace orrery
