#include "sim/cost/graph_routes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// Leaves 0 and 1, which spines 2 and 3 join with three links and one; switch 4 is beside leaf 1.
FabricGraph two_leaves() {
  return {.switches = 5,
          .cables = {{0, 2, 3, 400}, {0, 3, 1, 400}, {2, 1, 3, 400}, {3, 1, 1, 400}, {1, 4, 2, 100}},
          .leaves = {}};
}

std::map<std::int64_t, double> shares(GraphRoutes& routes, int from, int to) {
  std::map<std::int64_t, double> on_link;
  routes.visit_links(from, to, [&](std::int64_t link, double share) { on_link[link] += share; });
  return on_link;
}

TEST(GraphRoutes, DivideWhatASwitchSendsOverAllShortestWays) {
  const FabricGraph graph = two_leaves();
  GraphRoutes routes(graph);
  EXPECT_EQ(routes.distance(0, 4), 3);
  EXPECT_EQ(shares(routes, 0, 1), (std::map<std::int64_t, double>{{0, .75}, {2, .25}, {4, .75}, {6, .25}}));
  EXPECT_EQ(shares(routes, 1, 0), (std::map<std::int64_t, double>{{1, .75}, {3, .25}, {5, .75}, {7, .25}}));
  EXPECT_EQ(shares(routes, 4, 0).at(9), 1);
  EXPECT_TRUE(shares(routes, 2, 2).empty());
  EXPECT_EQ(routes.rate_of(8), 2 * 100e9 / 8);
}

// 8 nodes of 8 GPUs, four on each of two leaves that a spine joins.
Spec graph_spec(const std::string& network, const std::string& strategy) {
  return parse_spec(
      fmt::format(
          "model: {{name: t, layers: 8, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 4096{}}}\n"
          "sequence: 1024\ncluster: {{node: dgx-h100, nodes: 8, network: {}}}\nstrategy: {}\n",
          strategy.find("expert") != std::string::npos ? ", moe: {experts: 64, top_k: 8, feed_forward: 1024}" : "",
          network, strategy),
      "graph.yaml");
}

std::string graph_of(int up_first, int up_second) {
  const std::string all = "0, 0, 0, 0, 0, 0, 0, 0", other = "1, 1, 1, 1, 1, 1, 1, 1";
  return fmt::format(
      "{{kind: graph, graph: {{switches: 3, cables: [[0, 2, {}, 400], [1, 2, {}, 400]], nodes: [{{nodes: 4, switches: "
      "[{}]}}, {{nodes: 4, switches: [{}]}}]}}}}",
      up_first, up_second, all, other);
}

// A regular graph takes the time of the fat tree of its leaves and uplinks; of two leaves the one with fewest counts.
TEST(GraphRoutes, OfARegularFabricAreThoseOfTheClosedForm) {
  for (const char* strategy :
       {"{tensor: 8, data: 8, global_batch: 8, overlap: {gradient_reduce: false}}",
        "{data: 64, expert: 64, global_batch: 64}", "{tensor: 8, pipeline: 8, global_batch: 16}"}) {
    const auto time = [&](const std::string& network) {
      return predict(graph_spec(network, strategy)).report.step_time_s;
    };
    for (const int up : {32, 8, 2, 1}) {
      const Seconds leaves = time(fmt::format("{{kind: fat-tree, leaf: {{nodes: 4, uplinks: {}}}}}", up));
      EXPECT_NEAR(time(graph_of(up, up)), leaves, 1e-9 * leaves) << strategy << up;
    }
    EXPECT_NEAR(time(graph_of(32, 1)), time(graph_of(1, 1)), 1e-9) << "the busiest link counts";
    EXPECT_GT(time(graph_of(32, 1)), time(graph_of(32, 32)));
  }
}

TEST(GraphRoutes, AreTheSameFoldedOrNot) {
  const Spec spec = graph_spec(graph_of(4, 2), "{tensor: 8, data: 8, global_batch: 16}");
  EXPECT_EQ(predict(spec).trace.step_time, predict(spec, true).trace.step_time);
}

}  // namespace
}  // namespace orrery
