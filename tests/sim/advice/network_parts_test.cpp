#include "sim/advice/network_parts.h"

#include <string>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

constexpr std::int64_t kSwitchPorts = 64;

NetworkParts parts_of_network(std::int64_t nodes, const std::string& network) {
  const Spec spec =
      parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: " + std::to_string(nodes) +
                     ", network: " + network + "}\nstrategy: {data: 8}\n",
                 "network.yaml");
  return network_parts(spec.cluster, nodes, {.ports = kSwitchPorts, .port_Gbps = 400});
}

// 1,024 GPUs with a NIC each need 32 leaves of 32 + 32 ports and 16 spine switches, and as many links up as down.
TEST(NetworkParts, OfTwoLevelsWithoutContention) {
  const NetworkParts rails = parts_of_network(128, "{leaf: {nodes: 32}}");
  EXPECT_EQ(rails.switches, 48);
  EXPECT_EQ(rails.links, 2048);
  const NetworkParts tree = parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 4}}");
  EXPECT_EQ(tree.switches, 48);
  EXPECT_EQ(tree.links, 2048);
}

// 512 leaves cannot hang on switches of 64 ports: 512 switches above them, then 256. Joined rails are as many leaves;
// each of eight rails that are not joined has 64, and fits below one level.
TEST(NetworkParts, OfThreeLevelsWhereLeavesAreMoreThanPorts) {
  const NetworkParts tree = parts_of_network(2048, "{kind: fat-tree, leaf: {nodes: 4}}");
  EXPECT_EQ(tree.switches, 1280);
  EXPECT_EQ(tree.links, 49'152);
  EXPECT_EQ(tree.levels, 3);
  EXPECT_EQ(parts_of_network(2048, "{leaf: {nodes: 32}}").switches, 1280);
  const NetworkParts only = parts_of_network(2048, "{kind: rail-only, leaf: {nodes: 32}}");
  EXPECT_EQ(only.switches, 768);
  EXPECT_EQ(only.levels, 2);
  EXPECT_EQ(parts_of_network(256, "{kind: fat-tree, leaf: {nodes: 4}}").levels, 2) << "64 leaves, the most";
  EXPECT_EQ(parts_of_network(257, "{kind: fat-tree, leaf: {nodes: 4}}").levels, 3);
}

// 65,536 hosts are the most of three levels; each of eight rails that are not joined has 8,192 of them.
TEST(NetworkParts, OfRailsWithMoreLeavesThanASpineHasPorts) {
  const NetworkParts rails = parts_of_network(8192, "{leaf: {nodes: 32}}");
  EXPECT_EQ(rails.switches, 2048 + 2048 + 1024);
  EXPECT_EQ(rails.links, 3 * 65'536);
  EXPECT_EQ(rails.levels, 3);
  const NetworkParts only = parts_of_network(8192, "{kind: rail-only, leaf: {nodes: 32}}");
  EXPECT_EQ(only.switches, 5 * 1024);
  EXPECT_EQ(only.levels, 3);
  EXPECT_EQ(parts_of_network(16'384, "{leaf: {nodes: 32}}").levels, 4);
}

// A quarter of the uplinks needs a quarter of what is above the leaves.
TEST(NetworkParts, AboveLeavesAreAsManyAsUplinksNeed) {
  const NetworkParts p = parts_of_network(2048, "{kind: fat-tree, leaf: {nodes: 4, uplinks: 8}}");
  EXPECT_EQ(p.switches, 512 + 128 + 64);
  EXPECT_EQ(p.links, 16'384 + 2 * 4096);
  EXPECT_EQ(p.levels, 3);
}

// A leaf of 128 hosts without uplinks is itself a tree of 4 + 2 switches; one with as many uplinks as hosts is divided,
// and what is above joins its parts; one with fewer has 4 + 3 switches of 128 down, 128 within, and 64 up.
TEST(NetworkParts, OfALeafOfMoreHostsThanPorts) {
  const NetworkParts alone = parts_of_network(16, "{kind: fat-tree, leaf: {nodes: 16}}");
  EXPECT_EQ(alone.switches, 6);
  EXPECT_EQ(alone.links, 256);
  EXPECT_EQ(alone.levels, 2);
  const NetworkParts equal = parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 16}}");
  EXPECT_EQ(equal.switches, 48);
  EXPECT_EQ(equal.links, 2048);
  const NetworkParts fewer = parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 16, uplinks: 64}}");
  EXPECT_EQ(fewer.switches, 8 * (4 + 3) + 8);
  EXPECT_EQ(fewer.links, 2 * 1024 + 512);
  EXPECT_EQ(fewer.levels, 3);
}

TEST(NetworkParts, AreFewerWhereRailsAreNotJoined) {
  const NetworkParts rails = parts_of_network(32, "{leaf: {nodes: 32}}");
  EXPECT_EQ(rails.switches, 8 + 4);
  const NetworkParts only = parts_of_network(32, "{kind: rail-only, leaf: {nodes: 32}}");
  EXPECT_EQ(only.switches, 8);
  EXPECT_EQ(only.links, 256);
}

// 2 parts of 16 leaves of 4 nodes; of a part's 512 uplinks an eighth goes on.
TEST(NetworkParts, OfASpineOfParts) {
  const NetworkParts p = parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 4}, spine: {leaves: 16, ratio: 8}}");
  EXPECT_EQ(p.switches, 32 + 2 * 9 + 2);
  EXPECT_EQ(p.links, 1024 + 1024 + 128);
  // A spine without parts whose ratio is 2 is what half of the uplinks need.
  const NetworkParts half = parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 4}, spine: {ratio: 2}}");
  EXPECT_EQ(half.links, parts_of_network(128, "{kind: fat-tree, leaf: {nodes: 4, uplinks: 16}}").links);
}

// A leaf of half the rate has half as many ports; a plane's spine is not joined to another's.
TEST(NetworkParts, OfPlanesAreThoseOfEach) {
  const NetworkParts p = parts_of_network(128, "{leaf: {nodes: 64}, planes: 2}");
  EXPECT_EQ(p.switches, 2 * (2 * 8 + 8)) << "leaves of 32 + 32 ports of 400 Gb/s, 512 of which 64 spines take";
  EXPECT_EQ(p.links, 2048);
  const NetworkParts one = parts_of_network(64, "{kind: rail-only, leaf: {nodes: 64}, planes: 2}");
  EXPECT_EQ(one.switches, 16);
}

TEST(NetworkParts, OfDragonfliesAndTori) {
  const NetworkParts dragonfly =
      parts_of_network(128, "{kind: dragonfly, leaf: {nodes: 4, uplinks: 16}, groups: {leaves: 8, links: 16}}");
  EXPECT_EQ(dragonfly.switches, 32);  // of 32 + 16 + 16 ports
  EXPECT_EQ(dragonfly.links, 1024 + 32 * 16);
  const NetworkParts torus = parts_of_network(128, "{kind: torus, torus: {shape: [8, 8, 2], Gbps: 800}}");
  EXPECT_EQ(torus.switches, 0);
  EXPECT_EQ(torus.links, 2 * (128 + 128 + 64));
  const NetworkParts alone =
      parts_of_network(32, "{kind: dragonfly, leaf: {nodes: 4, uplinks: 16}, groups: {leaves: 8, links: 16}}");
  EXPECT_EQ(alone.links, 256 + 8 * 8) << "one group has no links to others";
}

struct BuiltIn {
  const char *name, *cluster;
  std::int64_t nodes, switches;
  double links;
};

// gb200-superpod: 2 units of 4 rails, whose 144 ports down and 144 up take 5 switches each, and a spine of 18.
// cray-ex-dragonfly: 64 switches of 16 + 31 + 16 ports of 200 Gb/s, of which two are one of 400 Gb/s. tpu-v4-pod: 3
// links of 800 Gb/s a node. rail-only: 8 switches, each with a link to every node. deepseek-mpft: 768 switches for
// 16,384 GPUs, as its authors count (Zhao et al. 2025, arXiv:2505.09343, table 3). alibaba-hpn: 2 planes of 15 segments
// of 8 rails, whose leaves have 64 + 60 ports of 400 Gb/s, of 2 + 2 switches of the list; on 120 leaves 4 groups of 57,
// and 113.
TEST(NetworkParts, OfBuiltInNetworks) {
  for (const BuiltIn& b :
       {BuiltIn{"gb200-superpod", "node: gb200-nvl72", 288, 8 * 5 + 18, 1152 + 1152},
        BuiltIn{"cray-ex-dragonfly", "gpu: h100-sxm, gpus_per_node: 4, nics: 4, nic_Gbps: 200", 256, 64,
                512 + 64 * (31 + 16) / 4},
        BuiltIn{"tpu-v4-pod", "gpu: h100-sxm, gpus_per_node: 4, nics: 4, nic_Gbps: 400", 1024, 0, 2 * 3 * 1024},
        BuiltIn{"rail-only", "node: dgx-h100", 64, 8, 512},
        BuiltIn{"deepseek-mpft", "node: dgx-h100", 2048, 768, 16384 + 16384},
        BuiltIn{"alibaba-hpn", "node: dgx-h100", 1920, 240 * 4 + 2 * (4 * 57 + 113), 15360 + 240 * (64 + 60 + 60)}}) {
    const Spec spec = parse_spec("model: gpt2\nsequence: 1024\ncluster: {" + std::string(b.cluster) + ", nodes: " +
                                     std::to_string(b.nodes) + ", network: " + b.name + "}\nstrategy: {data: 8}\n",
                                 "network.yaml");
    const NetworkParts parts = network_parts(spec.cluster, b.nodes, {.ports = kSwitchPorts, .port_Gbps = 400});
    EXPECT_EQ(parts.switches, b.switches) << b.name;
    EXPECT_EQ(parts.links, b.links) << b.name;
  }
}

// Alibaba's own switches have 128 ports, so that two levels are enough (Qian et al. 2024, section 4).
TEST(NetworkParts, AreFewerOfLargerSwitches) {
  const Spec spec = parse_spec(
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 1920, network: alibaba-hpn}\nstrategy: {data: "
      "8}\n",
      "network.yaml");
  const NetworkParts parts = network_parts(spec.cluster, 1920, {.ports = 128, .port_Gbps = 400});
  EXPECT_EQ(parts.switches, 240 + 2 * 57);
  EXPECT_EQ(parts.levels, 2);
}

TEST(NetworkParts, CostWhatTheListSays) {
  const SwitchPrice price{.ports = 64, .port_Gbps = 400, .switch_usd = 36'000, .link_usd = 1'280, .link_kW = .0155};
  EXPECT_EQ(usd_of({48, 2048}, price), 48 * 36'000 + 2048 * 1'280);
  EXPECT_NEAR(*kW_of({48, 2048}, price), 31.744, 1e-9);
  EXPECT_FALSE(usd_of({}, price));
  EXPECT_FALSE(usd_of({48, 2048}, {.ports = 64}));
}

// Four groups of four leaves with four switches of a spine each: 16 leaves of 8 + 8 ports, 16 of 8 + 3.
TEST(NetworkParts, OfGroupsWithASpineOfTheirOwn) {
  const NetworkParts plus =
      parts_of_network(16, "{kind: dragonfly+, leaf: {nodes: 1}, groups: {leaves: 4, spines: 4, links: 3}}");
  EXPECT_EQ(plus.switches, 32);
  EXPECT_EQ(plus.links, 16 * (8 + 8) + 16 * 3 / 2.0);
}

// Parts of 4 leaves at 1:2, and parts of these four at 1:2 again: 512 ports of leaves, 256 above, 128 above these.
TEST(NetworkParts, OfASpineOfSeveralLevels) {
  const std::string leaf = "{kind: fat-tree, leaf: {nodes: 4}, spine: ";
  const NetworkParts two = parts_of_network(128, leaf + "[{leaves: 4, ratio: 2}, {leaves: 16, ratio: 2}]}");
  const NetworkParts one = parts_of_network(128, leaf + "{leaves: 4, ratio: 2}}");
  EXPECT_EQ(parts_of_network(128, leaf + "[{leaves: 4, ratio: 2}]}").links, one.links);
  EXPECT_EQ(one.links, 1024 + 1024 + 512);
  EXPECT_EQ(two.links, 1024 + 1024 + 512 + 256);
}

}  // namespace
}  // namespace orrery
