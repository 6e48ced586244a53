#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

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

}  // namespace
}  // namespace orrery
