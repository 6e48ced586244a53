#include "sim/topology/fabric.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/topology/cluster_facts.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// Leaves of two hosts each, with so many links to a spine, as ibnetdiscover prints them. LIDs: leaves 1, 2, ..., the
// spine 100, hosts 10, 11, ....
std::string fabric_text(const std::vector<int>& uplinks) {
  std::string leaves, spine = "Switch\t64 \"S-99\"\t# \"spine\" enhanced port 0 lid 100 lmc 0\n";
  int host = 0, port = 0;
  for (std::size_t leaf = 0; leaf < uplinks.size(); ++leaf) {
    leaves += fmt::format("Switch\t64 \"S-{0:02}\"\t# \"leaf{0}\" enhanced port 0 lid {0} lmc 0\n", leaf + 1);
    for (int i = 0; i < 2; ++i, ++host)
      leaves += fmt::format("[{}]\t\"H-{:02}\"[1](a)\t# \"n{} mlx5_0\" lid {} 4xNDR\n", i + 1, host, host, 10 + host);
    for (int up = 0; up < uplinks[leaf]; ++up) {
      ++port;
      leaves += fmt::format("[{}]\t\"S-99\"[{}]\t# \"spine\" lid 100 4xNDR\n", 33 + up, port);
      spine += fmt::format("[{}]\t\"S-{:02}\"[{}]\t# \"leaf\" lid {} 4xNDR\n", port, leaf + 1, 33 + up, leaf + 1);
    }
    leaves += "\n";
  }
  return leaves + spine;
}

std::string written(const test::TemporaryFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.path(name)) << text;
  return folder.path(name);
}

std::string table_text(int lid, const std::vector<std::pair<int, int>>& routes) {
  std::string text = fmt::format("Unicast lids [0x0-0x40] of switch Lid {} guid 0x1 (s{}):\n", lid, lid);
  for (const auto& [to, port] : routes)
    text += fmt::format("0x{:04x} {:03} : (Channel Adapter portguid 0x1: 'n mlx5_0')\n", to, port);
  return text;
}

TEST(Fabric, OfLeavesThatAreAlikeIsAClosedForm) {
  const test::TemporaryFolder folder;
  const ClusterFacts facts = read_cluster_facts({written(folder, "ib.txt", fabric_text({2, 2, 2}))});
  EXPECT_FALSE(facts.graph);
  EXPECT_EQ(facts.leaf_uplinks, 2);
}

// The second leaf has one link: no number of uplinks says that of all leaves.
TEST(Fabric, OfLeavesThatAreNotAlikeIsKeptAsAGraph) {
  const test::TemporaryFolder folder;
  const ClusterFacts facts = read_cluster_facts({written(folder, "ib.txt", fabric_text({2, 1}))});
  ASSERT_TRUE(facts.graph);
  EXPECT_EQ(facts.graph->switches, 3);
  ASSERT_EQ(facts.graph->cables.size(), 2U);
  EXPECT_EQ(facts.graph->cables[0].count, 2);
  EXPECT_EQ(facts.graph->cables[1].count, 1);
  EXPECT_EQ(facts.graph->cables[1].Gbps, 400);
  EXPECT_EQ(facts.graph->leaves, (std::vector<std::vector<std::int32_t>>{{0}, {0}, {1}, {1}}));
  EXPECT_EQ(facts.places, (std::vector<std::string>{"n0", "n1", "n2", "n3"}));
  written(folder, "fabric.yaml", facts_text(facts));
  written(folder, "spec.yaml",
          "model: gpt2\nsequence: 1024\ncluster: {gpu: h100-sxm, gpus_per_node: 8, nodes: 4, nics: 1, nic_Gbps: "
          "400, network: {file: fabric.yaml}}\nstrategy: {data: 32}\n");
  const Spec spec = load_spec(folder.path("spec.yaml"), {});
  EXPECT_EQ(spec.cluster.network->kind, NetworkKind::graph);
  EXPECT_EQ(spec.cluster.network->graph.leaves, facts.graph->leaves);
  EXPECT_EQ(spec.cluster.network->graph.cables.size(), 2U);
}

// Tables that use both links of a leaf evenly send to 2 of 4 hosts beyond it over each.
// A node's NICs are in the order of their devices, whatever the order of the switches that they are on.
TEST(Fabric, KeepsNicsInTheOrderOfTheirDevices) {
  const test::TemporaryFolder folder;
  const std::string text =
      "Switch\t64 \"S-01\"\t# \"leaf0\" enhanced port 0 lid 1 lmc 0\n"
      "[1]\t\"H-00\"[1](a)\t# \"n0 mlx5_10\" lid 10 4xNDR\n[2]\t\"H-01\"[1](a)\t# \"n1 mlx5_10\" lid 11 4xNDR\n"
      "[33]\t\"S-02\"[33]\t# \"leaf1\" lid 2 4xNDR\n\n"
      "Switch\t64 \"S-02\"\t# \"leaf1\" enhanced port 0 lid 2 lmc 0\n"
      "[1]\t\"H-02\"[1](a)\t# \"n0 mlx5_3\" lid 12 4xNDR\n[2]\t\"H-03\"[1](a)\t# \"n1 mlx5_3\" lid 13 4xNDR\n"
      "[33]\t\"S-01\"[33]\t# \"leaf0\" lid 1 4xNDR\n[34]\t\"S-03\"[1]\t# \"more\" lid 3 4xNDR\n\n"
      "Switch\t64 \"S-03\"\t# \"more\" enhanced port 0 lid 3 lmc 0\n[1]\t\"S-02\"[34]\t# \"leaf1\" lid 2 4xNDR\n";
  const ClusterFacts facts = read_cluster_facts({written(folder, "ib.txt", text)});
  ASSERT_TRUE(facts.graph);
  EXPECT_EQ(facts.graph->leaves, (std::vector<std::vector<std::int32_t>>{{1, 0}, {1, 0}}));
}

TEST(Fabric, IsCheckedAgainstItsForwardingTables) {
  FabricLinks fabric = ibnetdiscover_links(fabric_text({2, 2, 2}), "ib.txt").fabric;
  const std::vector<std::string> nodes = {"n0", "n1", "n2", "n3", "n4", "n5"};
  ASSERT_EQ(fabric_routes(fabric, nodes, 1)->routes, 0);
  // Each host is reached by the link of its number, odd or even.
  std::string even, uneven;
  for (int leaf = 0; leaf < 3; ++leaf) {
    std::vector<std::pair<int, int>> routes, first;
    for (int host = 0; host < 6; ++host) {
      routes.emplace_back(10 + host, host / 2 == leaf ? 1 + host % 2 : 33 + host % 2);
      first.emplace_back(10 + host, host / 2 == leaf ? 1 + host % 2 : 33);
    }
    even += table_text(leaf + 1, routes);
    uneven += table_text(leaf + 1, first);
  }
  std::vector<std::pair<int, int>> down;
  for (int host = 0; host < 6; ++host) down.emplace_back(10 + host, 1 + host);
  even += table_text(100, down);
  uneven += table_text(100, down);
  fabric.tables = forwarding_tables(even, "lfts.txt").fabric.tables;
  const FabricRoutes by_even = *fabric_routes(fabric, nodes, 1);
  EXPECT_EQ(by_even.routes, 12);
  EXPECT_EQ(by_even.longer, 0);
  EXPECT_DOUBLE_EQ(by_even.table_load, 1);
  EXPECT_EQ(by_even.graph.cables[0].Gbps, 400);
  fabric.tables = forwarding_tables(uneven, "lfts.txt").fabric.tables;
  const FabricRoutes by_first = *fabric_routes(fabric, nodes, 1);
  EXPECT_EQ(by_first.longer, 0);
  EXPECT_DOUBLE_EQ(by_first.table_load, 2);
  EXPECT_EQ(by_first.graph.cables[0].Gbps, 200) << "as if a cable had one link";
  // A table that lacks a host, and one that sends back.
  fabric.tables[1].erase(12);
  fabric.tables[100][13] = 1;
  EXPECT_EQ(fabric_routes(fabric, nodes, 1)->longer, 3);
}

// Two switches are joined by cables of two rates. A table that sends to all four hosts beyond a leaf over the faster
// cable, which an even use would give two of, halves the rate of that cable and not of the other.
TEST(Fabric, LoadsCablesOfTwoRatesApart) {
  FabricLinks fabric;
  for (const char* id : {"a", "s"}) fabric.switches.push_back({id, id, id[0] == 'a' ? 1 : 2, {}});
  for (int i = 0; i < 2; ++i) {
    for (int port = 1; port <= 4; ++port)
      fabric.switches[i].ports[port] = {fmt::format("n{}", 4 * i + port), "", 10 + 4 * i + port, 400};
    fabric.switches[i].ports[33] = {"", i == 0 ? "s" : "a", 2 - i, 400};
    fabric.switches[i].ports[34] = {"", i == 0 ? "s" : "a", 2 - i, 200};
  }
  const std::vector<std::string> nodes = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};
  for (int host = 1; host <= 8; ++host) {
    fabric.tables[1][10 + host] = host <= 4 ? host : 33;
    fabric.tables[2][10 + host] = host <= 4 ? 33 : host - 4;
  }
  const FabricRoutes routes = *fabric_routes(fabric, nodes, 1);
  ASSERT_EQ(routes.graph.cables.size(), 2U);
  for (const FabricGraph::Cable& cable : routes.graph.cables) EXPECT_EQ(cable.Gbps, 200);
  EXPECT_DOUBLE_EQ(routes.table_load, 1) << "four pairs at 400 Gb/s take as long as two at 200";
}

// A spine with a link fewer is fuller than leaves' uplinks say, although all leaves have as many.
TEST(Fabric, WithAFullLinkBeyondItsLeavesIsKeptAsAGraph) {
  const auto fabric = [](int between) {
    FabricLinks f;
    const auto add = [&](const char* id) { f.switches.push_back({id, id, 0, {}}); };
    for (const char* id : {"a", "b", "s", "t"}) add(id);
    int port = 100;
    const auto join = [&](std::size_t x, std::size_t y, int links) {
      for (int i = 0; i < links; ++i, ++port) {
        f.switches[x].ports[port] = {"", f.switches[y].id, 0, 400};
        f.switches[y].ports[port] = {"", f.switches[x].id, 0, 400};
      }
    };
    for (int i = 0; i < 2; ++i) {
      f.switches[i].ports[1] = {fmt::format("n{}", 2 * i), "", 10 + 2 * i, 400};
      f.switches[i].ports[2] = {fmt::format("n{}", 2 * i + 1), "", 11 + 2 * i, 400};
    }
    join(0, 2, 2);
    join(1, 3, 2);
    join(2, 3, between);
    return f;
  };
  EXPECT_TRUE(fabric_routes(fabric(2), {"n0", "n1", "n2", "n3"}, 1)->regular);
  EXPECT_FALSE(fabric_routes(fabric(1), {"n0", "n1", "n2", "n3"}, 1)->regular);
}

}  // namespace
}  // namespace orrery
