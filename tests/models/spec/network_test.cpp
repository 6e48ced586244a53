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

using Rates = std::vector<double>;

// Faults of one leaf do not touch others, and a link that is named twice is slow once.
TEST(UplinkRates, AreThoseOfALeafsUplinksThatWork) {
  Network n;
  n.leaf_uplinks = 4;
  n.leaf_Gbps = 400;
  n.faults = {{.leaf = 2, .uplinks = 1}, {.leaf = 0, .Gbps = 100, .link = 1}, {.leaf = 0, .Gbps = 200, .link = 1}};
  EXPECT_EQ(uplink_rates(n, 0), Rates({1, .25, 1, 1}));
  EXPECT_EQ(working_uplinks(n, 0), 3.25);
  EXPECT_EQ(uplink_rates(n, 1), Rates(4, 1));
  EXPECT_EQ(uplink_rates(n, 2), Rates({1}));
  n.faults.push_back({.leaf = 0, .uplinks = 1});
  EXPECT_EQ(uplink_rates(n, 0), Rates({.25})) << "the one that works is the slow one";
}

TEST(UplinkRates, CountALinkThatIsDownAmongThoseThatDoNotWork) {
  Network n;
  n.leaf_uplinks = 4;
  n.leaf_Gbps = 400;
  n.faults = {{.leaf = 0, .Gbps = 0, .link = 1}, {.leaf = 0, .Gbps = 100, .link = 2}, {.leaf = 0, .uplinks = 3}};
  EXPECT_EQ(uplink_rates(n, 0), Rates({1, .25, 1})) << "one of the three is the link that is down";
  n.faults.push_back({.leaf = 0, .uplinks = 2});
  EXPECT_EQ(uplink_rates(n, 0), Rates({1, .25})) << "of whole ones the last goes first";
}

}  // namespace
}  // namespace orrery
