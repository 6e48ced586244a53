#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

Network network_of_64_nodes(const std::string& network) {
  return *parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 64, network: " + network +
                         "}\nstrategy: {data: 8}\n",
                     "network.yaml")
              .cluster.network;
}

std::string broken_rule(const std::string& network) {
  try {
    network_of_64_nodes(network);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(NetworkRules, SitesHaveBuffers) {
  EXPECT_EQ(network_of_64_nodes("{sites: {nodes: 32, Gbps: 100, ms: 10, buffer_MiB: 64}}").site_buffer_MiB, 64);
  EXPECT_EQ(network_of_64_nodes("{sites: {nodes: 32, Gbps: 100, ms: 10}}").site_buffer_MiB, 4);
  EXPECT_NE(broken_rule("{sites: {nodes: 32, Gbps: 100, ms: 10, buffer_MiB: 0}}").find("no size"), std::string::npos);
}

// Outages that are longer than a transfer survives are failures.
TEST(NetworkRules, OutagesOfLinksEndBeforeTransfersFail) {
  EXPECT_EQ(network_of_64_nodes("{flaps: {every_s: 3600, down_s: 2}}").flap_every_s, 3600);
  EXPECT_NE(broken_rule("{flaps: {every_s: 3600}}").find("down_s: missing"), std::string::npos);
  EXPECT_NE(broken_rule("{flaps: {every_s: 3600, down_s: 60}}").find("cluster.failures"), std::string::npos);
  EXPECT_NE(broken_rule("{flaps: {every_s: -1, down_s: 2}}").find("no times"), std::string::npos);
}

std::string file_refusal(const std::string& facts, const std::string& cluster) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path("fabric.yaml")) << "cluster: {" + facts + ", network: {leaf: {nodes: 2}}}\n";
  std::ofstream(folder.path("job.yaml")) << "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, " + cluster +
                                                ", network: {file: fabric.yaml}}\nstrategy: {data: 8}\n";
  try {
    return load_spec(folder.path("job.yaml"), {}).cluster.network->leaf_nodes == 2 ? "" : "not read";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(NetworkFile, OfAnotherClusterIsRefused) {
  EXPECT_EQ(file_refusal("nodes: 4, nics: 8, gpus_per_node: 8", "nodes: 4"), "");
  EXPECT_EQ(file_refusal("nvlink_domain: 8", "nodes: 4"), "");
  EXPECT_EQ(file_refusal("nodes: 64", "nodes: 4"), "");
  const std::string nodes = file_refusal("nodes: 4", "nodes: 64");
  EXPECT_NE(nodes.find("job.yaml:3: cluster.network.file: "), std::string::npos) << nodes;
  EXPECT_NE(nodes.find("fabric.yaml is of a cluster with nodes: 4, the spec has 64; set cluster.nodes=4 (and gpus"),
            std::string::npos)
      << nodes;
  EXPECT_NE(file_refusal("nodes: 4, nics: 2", "nodes: 4").find("nics: 2, the spec has 8"), std::string::npos);
}

}  // namespace
}  // namespace orrery
