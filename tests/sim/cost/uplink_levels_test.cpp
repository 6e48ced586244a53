#include "sim/cost/uplink_levels.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/cost/uplinks.h"

namespace orrery {
namespace {

// 8 nodes of 8 GPUs, and experts on all of them.
Spec eight_expert_nodes(const std::string& network, const std::string& strategy) {
  return parse_spec(fmt::format("model: {{name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096,\n"
                                "        moe: {{experts: 64, top_k: 2, feed_forward: 512}}}}\n"
                                "sequence: 256\n"
                                "cluster: {{node: dgx-h100, nodes: 8, network: {}}}\nstrategy: {}\n",
                                network, strategy),
                    "network.yaml");
}

struct FabricCase {
  const char* network;
  Dimension dimension;
  Uplinks::Pattern pattern;
  double bytes, seconds;  // that a node sends, and the least time
};

// Groups of 2 nodes have 8 links of 50 GB/s to three others. One edge of each of 8 rings goes from one group to the
// next: 400 GB over 133 GB/s, or over other groups too, which takes 533 GB/s half of the rate each. On a ring of 8
// nodes a link carries one edge of each ring, and 8 of the 56 pairs of nodes.
TEST(UplinkLevels, OfDragonfliesAndToriAreAsShortAsTheirBusiestLinks) {
  const std::string groups = "{kind: dragonfly, leaf: {nodes: 1}, groups: {leaves: 2, links: 4}, routing: {kind: ";
  const std::string minimal = groups + "d-mod-k}}", adaptive = groups + "adaptive}}";
  constexpr auto kEdges = Uplinks::Pattern::neighbours, kPairs = Uplinks::Pattern::pairs;
  for (const FabricCase& c :
       {FabricCase{minimal.c_str(), Dimension::data, kEdges, 50e9, 3},
        FabricCase{adaptive.c_str(), Dimension::data, kEdges, 50e9, 1.5},
        FabricCase{"{kind: torus, torus: {shape: [8], Gbps: 400}}", Dimension::data, kEdges, 50e9, 8},
        FabricCase{"{kind: torus, torus: {shape: [2, 4], Gbps: 800}}", Dimension::data, kEdges, 50e9, 4},
        FabricCase{"{kind: torus, torus: {shape: [8], Gbps: 400}, load: 0.5}", Dimension::expert, kPairs, 448e9,
                   512 / 25.0},
        // 2 x 6 pairs of nodes leave a group, 2 x 2 go to one other.
        FabricCase{minimal.c_str(), Dimension::expert, kPairs, 448e9, 256 / (400 / 3.0)}}) {
    const bool rings = c.dimension == Dimension::data;
    const Spec spec = eight_expert_nodes(c.network, rings ? "{tensor: 8, data: 8}" : "{data: 64, expert: 64}");
    const Plan plan = make_plan(spec);
    const Uplinks uplinks(plan, spec.cluster, 8);
    EXPECT_NE(uplinks.crossed(c.dimension, 0), 0U);
    EXPECT_NEAR(uplinks.least_time(c.dimension, c.pattern, {c.bytes}), c.seconds, 1e-6 * c.seconds) << c.network;
  }
}

// A dragonfly with as many links to other groups as NICs, balanced as Kim et al. (2008, section 3.1) have it: g groups
// of a nodes share the links to one other group among a x a pairs of nodes. All others of the a g nodes get a message
// from each node over its NICs, which takes as long or longer, so that an all-to-all on direct routes is not slowed.
TEST(UplinkLevels, OfABalancedDragonflyAreNoLongerThanNics) {
  for (const std::int64_t leaves : {1, 2, 4}) {
    const std::int64_t groups = 8 / leaves;
    const Spec spec = eight_expert_nodes(
        fmt::format("{{kind: dragonfly, leaf: {{nodes: 1}}, groups: {{leaves: {}, links: 8}}, routing: {{kind: "
                    "d-mod-k}}}}",
                    leaves),
        "{data: 64, expert: 64}");
    const Plan plan = make_plan(spec);
    const Uplinks uplinks(plan, spec.cluster, 8);
    const double nics = 8 * 50e9, bytes = nics;  // what a node sends to all others takes its NICs a second
    const auto a = static_cast<double>(leaves), g = static_cast<double>(groups);
    const double one_way = a * 8 * 50e9 / (g - 1);
    const Seconds expected = a * a * bytes / (a * g - 1) / one_way;
    EXPECT_NEAR(uplinks.least_time(Dimension::expert, Uplinks::Pattern::pairs, {bytes}), expected, 1e-9) << leaves;
    EXPECT_LE(expected, 1 + 1e-9);
  }
}

// A GPU sends 7/8 of an all-to-all to NICs of other rails: over NVLink at 450 GB/s, then over a NIC at 50.
TEST(UplinkLevels, OfSingleRailsAreReachedOverNvlink) {
  const Spec spec = eight_expert_nodes("{kind: rail-only, leaf: {nodes: 8}}", "{data: 64, expert: 64}");
  const Plan plan = make_plan(spec);
  Uplinks uplinks(plan, spec.cluster, 8);
  const NodeTraffic second{.bytes = 400e9, .nics = 8, .seconds = 1};
  EXPECT_NEAR(uplinks.time(0, Dimension::expert, Uplinks::Pattern::pairs, second), 1 + 7.0 / 8 / 9, 1e-9);
  EXPECT_EQ(uplinks.time(0, Dimension::data, Uplinks::Pattern::neighbours, second), 1);
}

TEST(UplinkLevels, AreLeftOutWhereTheyAreNotShort) {
  const Spec full = eight_expert_nodes("{leaf: {nodes: 2}}", "{data: 64, expert: 64}");
  const Plan plan = make_plan(full);
  EXPECT_TRUE(uplink_levels(plan, full.cluster, JobSeats(plan, full.cluster, 8)).empty());
}

// NICs reach a share of their rate in all transfers; a receiver of too many flows a share of it in an all-to-all.
TEST(UplinkLevels, HaveWhatTheTransportGives) {
  const auto needs = [](const std::string& network, Uplinks::Pattern pattern, bool by_node = false) {
    const Spec spec = parse_spec(
        "model: {name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096, moe: {experts: 32, top_k: "
        "2, feed_forward: 512}}\nsequence: 256\ncluster: {node: dgx-h100, nodes: 4, network: " +
            network + "}\nstrategy: {data: 32, expert: 32}\n",
        "transport.yaml");
    const Plan plan = make_plan(spec);
    const Dimension d = pattern == Uplinks::Pattern::pairs ? Dimension::expert : Dimension::data;
    return Uplinks(plan, spec.cluster, 8)
        .least_time(d, pattern, {.bytes = 400e9, .nics = 8, .by_node = by_node});  // of one second
  };
  EXPECT_NEAR(needs("{efficiency: 0.8}", Uplinks::Pattern::neighbours), 1.25, 1e-9);
  EXPECT_NEAR(needs("{efficiency: 0.8, leaf: {nodes: 1}}", Uplinks::Pattern::pairs), 1.25, 1e-9);
  EXPECT_NEAR(needs("{incast: {senders: 23, share: 0.5}}", Uplinks::Pattern::pairs), 2, 1e-9);
  EXPECT_EQ(needs("{incast: {senders: 24, share: 0.5}}", Uplinks::Pattern::pairs), 0) << "24 are not too many";
  EXPECT_EQ(needs("{incast: {senders: 1, share: 0.5}}", Uplinks::Pattern::neighbours), 0);
  EXPECT_NEAR(needs("{incast: {senders: 1, share: 0.5}, efficiency: 0.8}", Uplinks::Pattern::pairs), 2.5, 1e-9);
  // In two stages a rank gets the bytes of each of three other nodes from one of its ranks.
  EXPECT_EQ(needs("{incast: {senders: 3, share: 0.5}}", Uplinks::Pattern::pairs, true), 0);
  EXPECT_NEAR(needs("{incast: {senders: 2, share: 0.5}}", Uplinks::Pattern::pairs, true), 2, 1e-9);
}

}  // namespace
}  // namespace orrery
