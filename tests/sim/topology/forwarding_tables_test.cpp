#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

// The table of a leaf with a host at each of ports 1 and 2, whose uplinks 33 and 34 lead to so many other hosts.
std::string leaf_with(int over_first, int over_second) {
  std::string text =
      "Unicast lids [0x0-0x40] of switch Lid 1 guid 0x0000000000000001 (MF0;leaf1:MQM9700/U1):\n"
      "  Lid  Out   Destination\n       Port     Info \n"
      "0x0001 000 : (Switch portguid 0x0000000000000001: 'MF0;leaf1:MQM9700/U1')\n";
  int lid = 10;
  const auto add = [&](int port) {
    text += fmt::format("0x{:04x} {:03} : (Channel Adapter portguid 0x{:016x}: 'n{} mlx5_0')\n", lid, port, lid, lid);
    ++lid;
  };
  for (const int port : {1, 2}) add(port);
  for (int i = 0; i < over_first; ++i) add(33);
  for (int i = 0; i < over_second; ++i) add(34);
  text += "0x0060 033 : (Channel Adapter portguid 0x60: 'Mellanox Technologies Aggregation Node')\n";
  return text + fmt::format("{} valid lids dumped \n", lid - 8);
}

TEST(ForwardingTables, ThatAreEvenCountEveryUplink) {
  const ClusterFacts facts = forwarding_tables(leaf_with(5, 4), "lfts.txt");
  EXPECT_EQ(facts.even_uplinks, 2);
  EXPECT_EQ(facts.routing, Routing::d_mod_k);
  EXPECT_TRUE(facts.remarks.empty());
}

// One of two uplinks leads to nine of twelve hosts: that link is as full as if 12 / 9 uplinks were used evenly.
TEST(ForwardingTables, ThatAreUnevenCountAsFewerUplinks) {
  const ClusterFacts facts = forwarding_tables(leaf_with(5, 4) + leaf_with(9, 3), "lfts.txt");
  EXPECT_EQ(facts.even_uplinks, 1);
  ASSERT_EQ(facts.remarks.size(), 1U);
  EXPECT_NE(facts.remarks[0].find("9 of 12 adapters"), std::string::npos) << facts.remarks[0];
}

TEST(ForwardingTables, OfNoLeafAreRefused) {
  EXPECT_THROW(forwarding_tables("Unicast lids [0x0-0x1] of switch Lid 3 guid 0x3 (spine):\n", "lfts.txt"), Error);
  EXPECT_THROW(forwarding_tables("0x0001 001 : (Channel Adapter portguid 0x1: 'a')\n", "lfts.txt"), Error);
}

// Links say how many uplinks a leaf has, tables how evenly they are used.
TEST(ForwardingTables, CompleteTheLinksOfAFabric) {
  ClusterFacts facts = ibnetdiscover_links(samples::kIbnetdiscover, "ib.txt");
  complete(facts, forwarding_tables(leaf_with(9, 3), "lfts.txt"));
  EXPECT_EQ(facts.leaf_uplinks, 2);
  count_uneven_uplinks(facts);
  EXPECT_EQ(facts.leaf_uplinks, 1);
  EXPECT_NE(facts_text(facts).find("routing: {kind: d-mod-k}"), std::string::npos);
}

}  // namespace
}  // namespace orrery
