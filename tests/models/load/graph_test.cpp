// Reading cluster.network.graph.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

TEST(LoadGraph, ReadsSwitchesCablesAndNodes) {
  const Spec spec = parse_spec(
      "model: gpt2\nsequence: 1024\ncluster: {gpu: h100-sxm, nics: 2, nic_Gbps: 400, nodes: 3, network: {kind: graph, "
      "graph: {switches: 3, cables: [[0, 1, 4, 400], [1, 2, 2, 200]], nodes: [{nodes: 2, switches: [0, 1]}, {switches: "
      "[2, 1]}]}}}\nstrategy: {data: 24}\n",
      "graph.yaml");
  const FabricGraph& graph = spec.cluster.network->graph;
  EXPECT_EQ(graph.switches, 3);
  ASSERT_EQ(graph.cables.size(), 2U);
  EXPECT_EQ(graph.cables[1].to, 2);
  EXPECT_EQ(graph.cables[1].count, 2);
  EXPECT_EQ(graph.cables[1].Gbps, 200);
  EXPECT_EQ(graph.leaves, (std::vector<std::vector<std::int32_t>>{{0, 1}, {0, 1}, {2, 1}}));
}

TEST(LoadGraph, RefusesWhatIsNoFabric) {
  const auto refusal = [](const std::string& graph) -> std::string {
    try {
      parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 8, network: {kind: graph, graph: " +
                     graph + "}}\nstrategy: {data: 64}\n",
                 "graph.yaml");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string nodes = "nodes: [{nodes: 8, switches: [0, 0, 0, 0, 1, 1, 1, 1]}]";
  EXPECT_EQ(refusal("{switches: 2, cables: [[0, 1, 4, 400]], " + nodes + "}"), "");
  EXPECT_EQ(refusal("{switches: 2, cables: [], " + nodes + "}"), "") << "rails that are not joined";
  for (const auto& [graph, what] :
       {std::pair{"{switches: 2, " + nodes + "}", "cables: missing"},
        std::pair{"{switches: 2, cables: [[0, 2, 4, 400]], " + nodes + "}", "there is no switch 2 of 2"},
        std::pair{"{switches: 2, cables: [[0, 1, 4]], " + nodes + "}", "[SWITCH, SWITCH, LINKS, Gbps]"},
        std::pair{"{switches: 2, cables: [[0, 1, 0, 400]], " + nodes + "}", "0 is no number of links"},
        std::pair{std::string("{switches: 1, cables: [], nodes: [{nodes: 8, switches: [0]}]}"), "a node has 8 NICs"},
        std::pair{
            std::string("{switches: 2, cables: [], nodes: [{nodes: 4, switches: [0, 0, 0, 0, 0, 0, 0, 0]}, {nodes: 4, "
                        "switches: [1, 1, 1, 1, 1, 1, 1, 1]}]}"),
            "no way joins NIC 0 of nodes 0 and 4"},
        std::pair{std::string("{switches: 1, cables: [], nodes: [{nodes: 7, switches: [0, 0, 0, 0, 0, 0, 0, 0]}]}"),
                  "7 are cabled, the cluster has 8"}})
    EXPECT_NE(refusal(graph).find(what), std::string::npos) << refusal(graph);
}

}  // namespace
}  // namespace orrery
