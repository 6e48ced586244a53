#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// A cluster of 8 nodes, a job of 2 of them, and a file with the names of these.
class NamedPlacement : public ::testing::Test {
 protected:
  Spec load(const std::string& hosts, const std::string& network) const {
    std::ofstream(folder_.path("hosts.txt")) << hosts;
    std::ofstream(folder_.path("a.yaml")) << fmt::format(
        "model: gpt2\nsequence: 1024\ncluster: {{node: dgx-h100, nodes: 8, network: {}}}\ngpus: 16\nstrategy: {{data: "
        "16}}\n",
        network);
    return load_spec(folder_.path("a.yaml"), {});
  }
  std::string refusal(const std::string& hosts, const std::string& network) const {
    try {
      load(hosts, network);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

  test::TemporaryFolder folder_;
};

constexpr const char* kNamed = "{leaf: {nodes: 4}, node_names: 'a[00-03],b[0-2],c', placement: {nodes: hosts.txt}}";

TEST_F(NamedPlacement, GivesTheJobTheNodesOfAFile) {
  const Network n = *load("# from scontrol show hostnames\nb2\n\na01  # the second\n", kNamed).cluster.network;
  EXPECT_EQ(n.placement, Placement::listed);
  EXPECT_EQ(n.job_nodes, (std::vector<std::int64_t>{6, 1}));
  EXPECT_EQ(load("c,a[02-03]", kNamed).cluster.network->job_nodes, (std::vector<std::int64_t>{7, 2, 3}));
  const std::string gap = "{leaf: {nodes: 4}, node_names: 'a[00-02],-,b[0-2],-', placement: {nodes: hosts.txt}}";
  EXPECT_EQ(load("b0\na02\n", gap).cluster.network->job_nodes, (std::vector<std::int64_t>{4, 2}));
}

TEST_F(NamedPlacement, SaysWhichNameIsWrongAndWhere) {
  EXPECT_NE(refusal("a00\nb9\n", kNamed).find("hosts.txt:2: b9 is not one of cluster.network.node_names; did you mean"),
            std::string::npos)
      << refusal("a00\nb9\n", kNamed);
  EXPECT_NE(refusal("a00\nb1\na00\n", kNamed).find("hosts.txt:3: a00 is in line 1 already"), std::string::npos);
  EXPECT_NE(refusal("a00\na[3-1]\n", kNamed).find("hosts.txt:2: 3-1 ends before it begins"), std::string::npos);
  EXPECT_NE(refusal("-\n", kNamed).find("hosts.txt:1: - is not one of"), std::string::npos);
  EXPECT_NE(refusal("# none\n", kNamed).find("hosts.txt: has no name of a node"), std::string::npos);
  EXPECT_NE(refusal("a00\n", kNamed).find("1 nodes are listed, 16 GPUs need 2"), std::string::npos);
}

TEST_F(NamedPlacement, NeedsNamesThatAreThereOnce) {
  EXPECT_NE(
      refusal("a\n", "{leaf: {nodes: 4}, placement: {nodes: hosts.txt}}").find("needs cluster.network.node_names"),
      std::string::npos);
  EXPECT_NE(refusal("a\n", "{leaf: {nodes: 4}, node_names: 'a,b,a'}").find("node_names: a is there twice"),
            std::string::npos);
  EXPECT_NE(refusal("a\n", "{leaf: {nodes: 4}, node_names: 'a['}").find("node_names: a bracket is not closed"),
            std::string::npos);
  EXPECT_NE(refusal("a\n", "{leaf: {nodes: 4}, node_names: a, placement: {}}").find("placement.nodes: missing"),
            std::string::npos);
  EXPECT_NE(
      refusal("a\n", "{leaf: {nodes: 4}, node_names: 'n[0-8]', job_nodes: [0, 1], placement: {nodes: hosts.txt}}"), "");
}

}  // namespace
}  // namespace orrery
