#include "sim/explain/group_routes.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

struct NetworkWay {
  const char *network, *way, *GBps, *us;
};

// The way of a pipeline's first two stages, which are on the job's first two nodes, without their ends. Switches beyond
// the first take 0.6 us each.
constexpr NetworkWay kNetworkWays[] = {
    {"{leaf: {nodes: 8}}", "nic 0.0 - leaf 0 - nic 1.0", "50.0", "2.7"},
    {"{leaf: {nodes: 4}, placement: scattered}", "nic 0.0 - leaf 0 - spine 0 - leaf 8 - nic 4.0", "50.0", "3.9"},
    {"{leaf: {nodes: 1}, spine: {ratio: 2}}", "nic 0.0 - leaf 0 - spine 0 - leaf 8 - nic 1.0", "25.0", "3.9"},
    {"{leaf: {nodes: 1, uplinks: 1, Gbps: 200}}", "nic 0.0 - leaf 0 - spine 0 - leaf 8 - nic 1.0", "25.0", "3.9"},
    {"{leaf: {nodes: 2}, job_nodes: [0, 4, 1, 2], spine: {leaves: 2, ratio: 4}}",
     "nic 0.0 - leaf 0 - spine 0 - core 0 - spine 1 - leaf 16 - nic 4.0", "12.5", "5.1"},
    {"{faults: [{node: 0, Gbps: 100}]}", "nic 0.0 - leaf 0 - nic 1.0", "12.5", "2.7"},
    {"{leaf: {nodes: 1}, faults: [{leaf: 1, uplinks: 1}], kind: fat-tree}",
     "nic 0.0 - leaf 0 - spine 0 - leaf 1 - nic 1.0", "6.2", "3.9"},
    {"{leaf: {nodes: 8}, planes: 2, faults: [{plane: 1, node: 1}]}", "nic 0.0 - leaf 0 - nic 1.0", "25.0", "2.7"},
    {"{sites: {nodes: 1, Gbps: 800, ms: 5}}", "nic 0.0 - leaf 0 - site 0 - site 1 - leaf 1 - nic 1.0", "12.5",
     "5003.9"},
    {"{kind: torus, torus: {shape: [2, 4]}}", "nic 0.0 - node 0 - node 1 - nic 1.0", "50.0", "2.7"},
    {"{kind: torus, torus: {shape: [2, 4], Gbps: 80}, job_nodes: [0, 6, 1, 2]}",
     "nic 0.0 - node 0 - 3 links - node 6 - nic 6.0", "10.0", "3.9"},
    {"{kind: dragonfly, leaf: {nodes: 1}, groups: {leaves: 2, links: 8}}",
     "nic 0.0 - leaf 0 - group 0 - leaf 1 - nic 1.0", "50.0", "3.3"},
    {"{kind: dragonfly, leaf: {nodes: 1}, groups: {leaves: 1, links: 4}}",
     "nic 0.0 - leaf 0 - group 0 - group 1 - leaf 1 - nic 1.0", "25.0", "4.5"},
    {"{kind: graph, graph: {switches: 3, cables: [[0, 2, 4, 400], [1, 2, 4, 100]], nodes: [{nodes: 1, switches: [0, 0, "
     "0, 0, 0, 0, 0, 0]}, {nodes: 7, switches: [1, 1, 1, 1, 1, 1, 1, 1]}]}}",
     "nic 0.0 - leaf 0 - leaf 2 - leaf 1 - nic 1.0", "12.5", "3.9"},
};

Section routes_of(const std::string& network) {
  const Spec spec =
      parse_spec("model: gpt2\nsequence: 1024\ngpus: 32\ncluster: {node: dgx-h100, nodes: 8, network: " + network +
                     "}\nstrategy: {pipeline: 4, data: 8, global_batch: 64}\n",
                 "network.yaml");
  return group_routes(predict(spec, false, ""));
}

TEST(GroupRoutes, FollowTheNetwork) {
  for (const NetworkWay& row : kNetworkWays) {
    const Section section = routes_of(row.network);
    const auto found = std::ranges::find(section.table.rows, "pipeline", [](const auto& cells) { return cells[0]; });
    ASSERT_NE(found, section.table.rows.end());
    const std::vector<std::string>& pipeline = *found;
    EXPECT_NE(pipeline[2].find(std::string(" - ") + row.way + " - "), std::string::npos) << pipeline[2];
    EXPECT_EQ(pipeline[3], row.GBps) << row.network;
    EXPECT_EQ(pipeline[4], row.us) << row.network;
  }
}

// Members of a group may all be on one leaf but for two.
TEST(GroupRoutes, ShowTheSlowestPairToo) {
  const Section section = routes_of("{sites: {nodes: 2, Gbps: 1600, ms: 5}}");
  const auto found =
      std::ranges::find(section.table.rows, "pipeline, slowest pair", [](const auto& cells) { return cells[0]; });
  ASSERT_NE(found, section.table.rows.end());
  const std::vector<std::string>& last = *found;
  EXPECT_NE(last[2].find("site 0 - site 1"), std::string::npos) << last[2];
  EXPECT_EQ(last[4], "5003.9");
}

// Nothing goes from a pipeline's last stage back to the first, which are three links apart where each two stages are
// one.
TEST(GroupRoutes, OfPipelinesAreNoRings) {
  const Section section = routes_of("{kind: torus, torus: {shape: [2, 4], wraps: false}}");
  EXPECT_TRUE(
      std::ranges::none_of(section.table.rows, [](const auto& cells) { return cells[0] == "pipeline, slowest pair"; }));
}

TEST(GroupRoutes, SayWhatTheirRatesLeaveOut) {
  EXPECT_TRUE(routes_of("{leaf: {nodes: 8}}").after.empty());
  EXPECT_EQ(
      routes_of("{leaf: {nodes: 8}, routing: {kind: ecmp}, load: 0.3}").after,
      (std::vector<std::string>{"rates are without collisions of hashed flows", "of uplinks other jobs take 30 %"}));
  EXPECT_EQ(routes_of("{kind: torus, torus: {shape: [2, 4]}}").after.size(), 1U);
}

}  // namespace
}  // namespace orrery
