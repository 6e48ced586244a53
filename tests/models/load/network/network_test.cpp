#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec with_network(const std::string& network) {
  return parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 64, network: " + network +
                        "}\nstrategy: {data: 8}\n",
                    "network.yaml");
}

std::string network_refusal(const std::string& network) {
  try {
    with_network(network);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(NetworkSpec, HasAsManyUplinksAsNicsUnlessItSaysOtherwise) {
  const Network rails = *with_network("{leaf: {nodes: 32}}").cluster.network;
  EXPECT_EQ(rails.kind, NetworkKind::rails);
  EXPECT_EQ(rails.leaf_uplinks, 32);
  EXPECT_EQ(rails.leaf_Gbps, 400);
  const Network tree = *with_network(
                            "{kind: fat-tree, leaf: {nodes: 4}, routing: {kind: ecmp, queue_pairs: 4}, load: 0.3, "
                            "spine: {leaves: 8, ratio: 7}}")
                            .cluster.network;
  EXPECT_EQ(tree.leaf_uplinks, 32);
  EXPECT_EQ(tree.routing, Routing::ecmp);
  EXPECT_EQ(tree.queue_pairs, 4);
  EXPECT_FALSE(tree.hash_seed);
  EXPECT_EQ(with_network("{leaf: {nodes: 4}, routing: {kind: ecmp, seed: 7}}").cluster.network->hash_seed, 7);
  EXPECT_EQ(tree.spine_leaves, 8);
  EXPECT_EQ(tree.spine_ratio, 7);
  EXPECT_EQ(tree.load, .3);
  EXPECT_FALSE(with_network("null").cluster.network);
}

TEST(NetworkSpec, DividesTheRateOfANicOverPlanes) {
  const Network planes = *with_network("{leaf: {nodes: 32}, planes: 4}").cluster.network;
  EXPECT_EQ(planes.planes, 4);
  EXPECT_EQ(planes.leaf_uplinks, 32);
  EXPECT_EQ(planes.leaf_Gbps, 100);
  EXPECT_FALSE(planes.hashed_planes);
  EXPECT_TRUE(with_network("{leaf: {nodes: 32}, planes: 2, routing: {kind: ecmp}}").cluster.network->hashed_planes);
  const Network faults = *with_network("{leaf: {nodes: 4}, planes: 2, faults: [{plane: 1, leaf: 0}]}").cluster.network;
  EXPECT_EQ(faults.faults.front().plane, 1);
  for (const char* fault : {"{plane: 1, node: -5}", "{plane: 1, leaf: -3}", "{plane: 1, Gbps: 0}", "{plane: 2}"})
    EXPECT_NE(network_refusal(fmt::format("{{leaf: {{nodes: 4}}, planes: 2, faults: [{}]}}", fault)), "") << fault;
  EXPECT_NE(network_refusal("{kind: torus, planes: 2, torus: {shape: [64]}}").find("a torus has no switches"),
            std::string::npos);
}

TEST(NetworkSpec, ReadsGroupsAndTori) {
  const Network dragonfly =
      *with_network("{kind: dragonfly, leaf: {nodes: 4}, groups: {leaves: 4, links: 8}}").cluster.network;
  EXPECT_EQ(dragonfly.groups.leaves, 4);
  EXPECT_EQ(dragonfly.groups.Gbps, 400);
  EXPECT_EQ(dragonfly.leaf_uplinks, 32);
  const Network torus = *with_network("{kind: torus, torus: {shape: [4, 4, 4], wraps: false}}").cluster.network;
  EXPECT_EQ(torus.torus.shape, (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_FALSE(torus.torus.wraps);
  EXPECT_EQ(torus.torus.Gbps, 8 * 400 / 6.0);
  EXPECT_NE(network_refusal("{kind: torus}").find("network.torus: missing"), std::string::npos);
  EXPECT_NE(network_refusal("{kind: torus, torus: {shape: []}}").find("torus.shape: it is empty"), std::string::npos);
  EXPECT_NE(network_refusal("{kind: dragonfly, leaf: {nodes: 4}, spine: {ratio: 7}, groups: {leaves: 4, links: 8}}")
                .find("a dragonfly has groups in its place"),
            std::string::npos);
  EXPECT_NE(network_refusal("{sites: {nodes: 2, Gbps: 1, ms: 0}, neighbours: {load: 0.9}}").find("has no effect"),
            std::string::npos);
  EXPECT_NE(network_refusal("{kind: torus, torus: {shape: [4, 4]}}").find("it has 16 nodes, the cluster 64"),
            std::string::npos);
  EXPECT_NE(network_refusal("{kind: torus, torus: {shape: [9223372036854775807, 4]}}").find("torus.shape"),
            std::string::npos);
  EXPECT_NE(network_refusal("{kind: torus, leaf: {nodes: 4}, torus: {shape: [64]}}").find("a torus has no switches"),
            std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, torus: {shape: [64]}}").find("needs cluster.network.kind: torus"),
            std::string::npos);
  EXPECT_NE(network_refusal("{kind: dragonfly, leaf: {nodes: 4}}").find("network.groups: missing"), std::string::npos);
  EXPECT_EQ(with_network("{leaf: {nodes: 4}, neighbours: {load: 0.3}}").cluster.network->load, .3);
  for (const char* given : {"{leaf: {nodes: 4}, neighbours: {jobs: [/b.yaml]}}", "{leaf: {nodes: 4}}"}) {
    const std::vector<Origin> origins = with_network(given).origins;
    const auto jobs = std::find_if(origins.begin(), origins.end(),
                                   [](const Origin& o) { return o.key == "cluster.network.neighbours.jobs"; });
    ASSERT_NE(jobs, origins.end()) << given;
    EXPECT_EQ(jobs->value, std::string_view(given).find("jobs") == std::string_view::npos ? "" : "[/b.yaml]");
  }
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, load: 0.2, neighbours: {load: 0.3}}").find("neighbours.load"),
            std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, neighbours: {jobs: []}}").find("neighbours.jobs: a list"),
            std::string::npos);
}

// Pods alone describe what cluster.oversubscription does.
TEST(NetworkSpec, ReadsPodsAndTransport) {
  const Cluster pods = with_network("{pods: {gpus: 256, ratio: 4}}").cluster;
  EXPECT_EQ(pods.oversubscribed_above_gpus, 256);
  EXPECT_EQ(pods.oversubscription, 4);
  EXPECT_FALSE(pods.network);
  EXPECT_TRUE(with_network("{pods: {gpus: 256, ratio: 4}, leaf: {nodes: 4}}").cluster.network);
  EXPECT_NE(
      network_refusal("{pods: {gpus: 256, ratio: 4}}, oversubscription: {above_gpus: 8, ratio: 2}").find("the same"),
      std::string::npos);
  EXPECT_NE(network_refusal("{pods: {gpus: 256}}").find("pods.ratio: missing"), std::string::npos);
  EXPECT_NE(network_refusal("{pods: {gpus: 256, ratio: 0.5}}").find("pods.ratio: 0.5"), std::string::npos);
  const Network n = *with_network("{efficiency: 0.9, incast: {senders: 16, share: 0.7}}").cluster.network;
  EXPECT_EQ(n.efficiency, .9);
  EXPECT_EQ(n.incast_senders, 16);
  EXPECT_EQ(n.incast_share, .7);
  EXPECT_NE(network_refusal("{efficiency: 0}").find("efficiency: 0 is no share"), std::string::npos);
  EXPECT_NE(network_refusal("{incast: {senders: 16, share: 2}}").find("incast.share: 2"), std::string::npos);
  EXPECT_NE(network_refusal("{incast: {senders: 16}}").find("incast.share: missing"), std::string::npos);
}

TEST(NetworkSpec, NamesTheKeyThatIsWrong) {
  for (const char* shapeless : {"{}", "{load: 0.1}", "{placement: scattered}", "{routing: {kind: ecmp}}"})
    EXPECT_NE(
        network_refusal(shapeless).find("network.yaml:3: cluster.network: it says nothing of the network's shape"),
        std::string::npos)
        << shapeless;
  EXPECT_NE(network_refusal("{leaf: {uplinks: 4}}").find("cluster.network.leaf.nodes: missing"), std::string::npos);
  EXPECT_NE(network_refusal("{faults: [{share: 0.1, Gbps: 100}]}").find("give a map: faults: {share: 0.001"),
            std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 0}}").find("leaf.nodes: 0"), std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4, Gbps: 0}}").find("leaf.Gbps: 0"), std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, spine: {ratio: .5}}").find("spine.ratio: 0.5"), std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, load: 1}").find("network.load: 1"), std::string::npos);
  EXPECT_NE(network_refusal("{leaf: {nodes: 4}, routing: {kind: ecpm}}").find("ecmp"), std::string::npos);
}

}  // namespace
}  // namespace orrery
