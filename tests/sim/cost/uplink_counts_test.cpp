#include "sim/cost/uplink_counts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

constexpr auto kOfData = static_cast<std::size_t>(Dimension::data);

// 16 nodes; a data group has a rank on each.
Spec on_network(const std::string& network, const std::string& strategy = "tensor: 8, data: 16") {
  return parse_spec(
      fmt::format("model: {{name: t, layers: 8, hidden: 1024, heads: 8, feed_forward: 4096, vocab: 4096}}\n"
                  "sequence: 1024\nsoftware: megatron-core\n"
                  "cluster: {{node: dgx-h100, nodes: 16, network: {}}}\nstrategy: {{{}}}\n",
                  network, strategy),
      "counts.yaml");
}

Seconds step_on(const std::string& network, const std::string& strategy = "tensor: 8, data: 16") {
  return predict(on_network(network, strategy)).report.step_time_s;
}

const UplinkLevel* level_of(const std::vector<UplinkLevel>& levels, UplinkKind kind) {
  for (const UplinkLevel& level : levels) {
    if (level.kind == kind) return &level;
  }
  return nullptr;
}

// A job with the first nodes of its leaves, in order, sends out of each leaf to one downlink. Where its nodes are 0, 2,
// 1, 4, ... two nodes of a leaf send to the first downlinks of others.
TEST(UplinkCounts, PinnedFlowsMeetWhereLeavesAreNotFull) {
  const auto busiest = [](const std::string& nodes) {
    const Spec spec = on_network("{kind: fat-tree, leaf: {nodes: 2}, routing: {kind: pinned}" + nodes + "}");
    const Plan plan = make_plan(spec);
    const JobSeats seats(plan, spec.cluster, 8);
    const std::vector<UplinkLevel> levels = uplink_levels(plan, spec.cluster, seats);
    const UplinkLevel* pinned = level_of(levels, UplinkKind::pinned);
    return pinned != nullptr ? pinned->edges[kOfData] : 0;
  };
  const double whole = busiest("");
  EXPECT_GT(whole, 0);
  EXPECT_DOUBLE_EQ(busiest(", job_nodes: [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 15]"), 2 * whole);
}

TEST(UplinkCounts, PinnedFlowsThatMeetLengthenTheStep) {
  const std::string even = "{kind: fat-tree, leaf: {nodes: 2}, ", apart = "placement: random, seed: 3, ";
  const Seconds free = step_on(even + apart + "routing: {kind: adaptive}}");
  EXPECT_EQ(step_on(even + "routing: {kind: pinned}}"), step_on(even + "routing: {kind: adaptive}}"));
  const Seconds met = step_on(even + apart + "routing: {kind: pinned}}");
  EXPECT_GT(met, 1.02 * free);
  EXPECT_LT(step_on("{kind: fat-tree, leaf: {nodes: 2, uplinks: 32}, " + apart + "routing: {kind: pinned}}"), met);
}

// Two sites of a list are those of a map; a third one behind the second adds its link.
TEST(UplinkCounts, LinksBetweenListedSitesCarryWhatIsOnTheirWay) {
  const Seconds map = step_on("{sites: {nodes: 8, Gbps: 400, ms: 1}}");
  EXPECT_DOUBLE_EQ(step_on("{sites: [{nodes: 8}, {nodes: 8, to: {0: {Gbps: 400, ms: 1}}}]}"), map);
  const Seconds row = step_on(
      "{sites: [{nodes: 8}, {nodes: 4, to: {0: {Gbps: 400, ms: 1}}}, {nodes: 4, to: {1: {Gbps: 400, ms: 3}}}]}");
  EXPECT_GT(row, 1.1 * map);
  const Seconds faster = step_on(
      "{sites: [{nodes: 8}, {nodes: 4, to: {0: {Gbps: 400, ms: 1}}}, {nodes: 4, to: {1: {Gbps: 400, ms: 1}}}]}");
  EXPECT_LT(faster, row);
}

TEST(UplinkCounts, UpperLevelsOfTheSpineHaveTheirOwnRatio) {
  const std::string leaves = "{leaf: {nodes: 2}, spine: ";
  const Seconds one = step_on(leaves + "{leaves: 2, ratio: 2}}");
  EXPECT_EQ(step_on(leaves + "[{leaves: 2, ratio: 2}]}"), one);
  EXPECT_EQ(step_on(leaves + "[{leaves: 2, ratio: 2}, {leaves: 8, ratio: 8}]}"), one) << "nothing is beyond the last";
  EXPECT_GT(step_on(leaves + "[{leaves: 2, ratio: 2}, {leaves: 4, ratio: 16}]}"), 1.05 * one);
}

TEST(UplinkCounts, LatencyIsAddedForEveryCrossing) {
  const std::string leaf = "{leaf: {nodes: 2}";
  const Seconds without = step_on(leaf + "}");
  EXPECT_EQ(step_on(leaf + ", latency_us: 0}"), without);
  const Seconds once = step_on(leaf + ", latency_us: 5}") - without;
  EXPECT_GT(once, 5e-6);
  EXPECT_NEAR(step_on(leaf + ", latency_us: 10}") - without, 2 * once, 1e-7);
  EXPECT_GT(step_on(leaf + ", spine: {leaves: 2}, latency_us: 5}") - without, 1.2 * once);
  EXPECT_EQ(step_on("{leaf: {nodes: 16}, latency_us: 5}"), step_on("{leaf: {nodes: 16}}"));
}

TEST(UplinkCounts, GroupsWithASpineHaveItsLinks) {
  const auto groups = [](const char* kind, const char* of) {
    return step_on(fmt::format("{{kind: {}, leaf: {{nodes: 2}}, groups: {{leaves: 2, {}}}}}", kind, of));
  };
  EXPECT_EQ(groups("dragonfly+", "spines: 2, links: 1"), groups("dragonfly", "links: 1"));
  EXPECT_LT(groups("dragonfly+", "spines: 8, links: 1"), groups("dragonfly", "links: 1"));
}

// In a node of two stages a slow NIC is of one of them.
TEST(UplinkCounts, ASlowNicSlowsTheTransfersThroughIt) {
  const std::string two_stages = "tensor: 4, pipeline: 2, data: 16", leaf = "{leaf: {nodes: 16}, faults: ";
  const Seconds node = step_on(leaf + "[{node: 3, Gbps: 50}]}"), nic = step_on(leaf + "[{nic: 3.5, Gbps: 50}]}");
  EXPECT_DOUBLE_EQ(nic, node) << "each node's NICs serve all stages";
  EXPECT_GT(nic, 1.1 * step_on("{leaf: {nodes: 16}}"));
  const std::string late = leaf + "[{nic: 9.5, Gbps: 50}", by_node = "tensor: 8, pipeline: 2, data: 8";
  EXPECT_LT(step_on(late + ", {nic: 3.5, Gbps: 390}]}", by_node), step_on(late + ", {nic: 3.5, Gbps: 50}]}", by_node))
      << "each NIC has its own rate";
  const std::string far = "tensor: 8, pipeline: 4, data: 4";
  EXPECT_LT(step_on(leaf + "[{nic: 15.5, Gbps: 50}]}", far), step_on(leaf + "[{node: 15, Gbps: 50}]}", far));
}

TEST(UplinkCounts, ASlowLinkCostsByHowFlowsAreSpread) {
  const auto slow = [](const char* routing, const char* faults) {
    return step_on(
        fmt::format("{{kind: fat-tree, leaf: {{nodes: 2, uplinks: 8}}, placement: scattered, routing: "
                    "{{kind: {}}}, faults: [{}]}}",
                    routing, faults));
  };
  const char* link = "{link: leaf 3 - spine 5, Gbps: 100}";
  EXPECT_GT(slow("adaptive", link), slow("adaptive", ""));
  EXPECT_GT(slow("d-mod-k", link), slow("adaptive", link)) << "all uplinks carry as much";
  EXPECT_GT(slow("ecmp", link), slow("ecmp", ""));
  EXPECT_GT(slow("pinned", link), slow("pinned", ""));
  EXPECT_EQ(slow("adaptive", "{leaf: 3, link: 5, Gbps: 100}"), slow("adaptive", link));
}

TEST(UplinkCounts, NeighboursTakeTheLinksThatAreNamed) {
  const std::string leaf = "{leaf: {nodes: 2, uplinks: 1}, spine: {leaves: 4, ratio: 16}, neighbours: {load: 0.5";
  const Seconds everywhere = step_on(leaf + "}}"), below = step_on(leaf + ", where: leaf}}"),
                above = step_on(leaf + ", where: spine}}");
  EXPECT_EQ(step_on(leaf + ", where: everywhere}}"), everywhere);
  EXPECT_LT(below, everywhere);
  EXPECT_LE(above, everywhere);
  EXPECT_NE(below, above);
  EXPECT_GT(step_on(leaf + ", burst_ms: 20}}"), 1.01 * everywhere);
  EXPECT_NEAR(step_on(leaf + ", burst_ms: 0.001}}"), everywhere, 1e-2 * everywhere);
}

}  // namespace
}  // namespace orrery
