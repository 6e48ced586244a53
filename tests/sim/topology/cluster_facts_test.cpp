#include "sim/topology/cluster_facts.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/sim/topology/samples.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

class Folder {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
    return folder_.path(name);
  }

 private:
  test::TemporaryFolder folder_;
};

std::string facts_error(const std::string& text) {
  const Folder folder;
  try {
    read_cluster_facts({folder.write("file", text)});
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(ClusterFacts, OfSeveralFilesCompleteEachOther) {
  const Folder folder;
  const ClusterFacts facts = read_cluster_facts(
      {folder.write("topo.txt", samples::kNvidiaSmi), folder.write("topo.xml", samples::kNcclTopology),
       folder.write("topology.conf", samples::kSlurm), folder.write("ib.txt", samples::kIbnetdiscover),
       folder.write("graphs.xml", samples::kNcclGraphs)});
  EXPECT_EQ(facts.gpus_per_node, 4);
  EXPECT_EQ(facts.nics, 2);
  EXPECT_EQ(facts.nic_Gbps, 400);
  EXPECT_EQ(facts.nodes, 256);
  EXPECT_EQ(facts.leaf_nodes, 32);
  EXPECT_EQ(facts.kind, NetworkKind::rails);
  EXPECT_EQ(facts.spine_leaves, 4);
}

// Slurm's names and those of ibnetdiscover are the same hosts, so that a list of a job's hosts finds its leaves.
TEST(ClusterFacts, NumberNodesByLeafSoThatAJobsHostsAreFound) {
  const Folder folder;
  const auto job_nodes = [&](const std::string& file, const std::string& hosts, int nodes, int gpus) {
    folder.write("fabric.yaml", facts_text(read_cluster_facts({file})));
    folder.write("hosts.txt", hosts);
    return load_spec(folder.write("job.yaml",
                                  fmt::format("model: gpt2\nsequence: 1024\nstrategy: {{data: {}}}\ngpus: {}\ncluster: "
                                              "{{node: dgx-h100, nodes: {}, nics: {}, network: {{file: fabric.yaml, "
                                              "placement: {{nodes: hosts.txt}}}}}}\n",
                                              gpus, gpus, nodes, nodes == 7 ? 8 : 2)),
                     {})
        .cluster.network->job_nodes;
  };
  const std::string tree = folder.write("tree.conf", "SwitchName=s0 Nodes=n[08-11]\nSwitchName=s1 Nodes=x,n[12-13]\n");
  EXPECT_EQ(job_nodes(tree, "n[13,09]\n", 7, 16), (std::vector<std::int64_t>{6, 1}));
  EXPECT_EQ(job_nodes(folder.write("ib.txt", samples::kIbnetdiscover), "b\na\n", 2, 16),
            (std::vector<std::int64_t>{1, 0}));
}

TEST(ClusterFacts, LeavePlacesFreeWhereLeavesAreNotAlike) {
  ClusterFacts facts;
  facts.leaf_nodes = 3;
  facts.nodes = 6;
  facts.names_by_leaf = {{"a1", "a2"}, {"b1", "b2", "b3"}, {"c"}};
  number_nodes(facts);
  EXPECT_EQ(facts.places, (std::vector<std::string>{"a1", "a2", "-", "b1", "b2", "b3", "c"}));
  EXPECT_EQ(facts.nodes, 7);
  EXPECT_NE(facts_text(facts).find("node_names: \"a[1-2],-,b[1-3],c\""), std::string::npos) << facts_text(facts);
  ASSERT_EQ(facts.remarks.size(), 1U);
}

TEST(ClusterFacts, LeaveNamesOutThatFindNoNode) {
  for (const std::vector<std::vector<std::string>>& names :
       std::vector<std::vector<std::vector<std::string>>>{{{"a"}, {"a"}}, {{"a", "b", "c"}}, {{"a b"}}, {{"a\"b"}}}) {
    ClusterFacts facts;
    facts.leaf_nodes = 2;
    facts.names_by_leaf = names;
    number_nodes(facts);
    EXPECT_TRUE(facts.places.empty());
    EXPECT_EQ(facts.remarks.size(), 1U);
  }
}

// Forwarding tables without links say nothing that a cluster could be written from.
TEST(ClusterFacts, OfForwardingTablesAloneAreRefused) {
  std::string table =
      "Unicast lids [0x0-0x40] of switch Lid 1 guid 0x1 (s1):\n  Lid  Out   Destination\n       Port     Info \n";
  int lid = 10;
  for (const int port : {1, 2, 33, 33, 33, 34, 34}) {
    table += fmt::format("0x{:04x} {:03} : (Channel Adapter portguid 0x{:016x}: 'n{} mlx5_0')\n", lid, port, lid, lid);
    ++lid;
  }
  EXPECT_NE(facts_error(table).find("give the output of ibnetdiscover too"), std::string::npos) << facts_error(table);
}

// The written text can be pasted into a spec, or read by the spec's network.
TEST(ClusterFacts, AreReadBackAsASpec) {
  const Folder folder;
  const ClusterFacts facts = read_cluster_facts(
      {folder.write("topo.txt", samples::kNvidiaSmi), folder.write("ib.txt", samples::kIbnetdiscover)});
  folder.write("fabric.yaml", facts_text(facts));
  const std::string head = "model: gpt2\nsequence: 1024\nstrategy: {data: 4}\n";
  const Spec pasted = load_spec(folder.write("a.yaml", head + facts_text(facts) + "  gpu: h100-sxm\n"), {});
  EXPECT_EQ(pasted.cluster.gpus_per_node, 4);
  EXPECT_EQ(pasted.cluster.nics, 2);
  ASSERT_TRUE(pasted.cluster.network.has_value());
  const Spec named = load_spec(
      folder.write(
          "b.yaml",
          head +
              "cluster: {node: dgx-h100, nodes: 2, gpus_per_node: 4, nics: 2, network: {file: fabric.yaml, load: 0.1, "
              "leaf: {Gbps: 400}}}\n"),
      {});
  ASSERT_TRUE(named.cluster.network.has_value());
  for (const Network& n : {*pasted.cluster.network, *named.cluster.network}) {
    EXPECT_EQ(n.kind, NetworkKind::rails);
    EXPECT_EQ(n.leaf_nodes, 2);
    EXPECT_EQ(n.leaf_uplinks, 2);
    EXPECT_EQ(n.leaf_Gbps, 400);
  }
  EXPECT_EQ(named.cluster.network->load, .1);
}

TEST(ClusterFacts, HostsOfLldpFilesShareLeaves) {
  const Folder folder;
  const ClusterFacts facts =
      read_cluster_facts({folder.write("a.json", samples::kLldp), folder.write("b.json", samples::kLldp)});
  EXPECT_EQ(facts.leaf_nodes, 2);
  EXPECT_EQ(facts.kind, NetworkKind::rails);
  EXPECT_FALSE(read_cluster_facts({folder.write("a.json", samples::kLldp)}).leaf_nodes);
}

TEST(ClusterFacts, AreOfTheToolThatTheLinesTell) {
  const Folder folder;
  std::string fabric = samples::kIbnetdiscover;
  for (std::size_t at = fabric.find("# \"a mlx"); at != std::string::npos; at = fabric.find("# \"a mlx", at))
    fabric.replace(at, 4, "# \"GPU01");
  EXPECT_EQ(read_cluster_facts({folder.write("ib.txt", fabric)}).leaf_nodes, 2);
  EXPECT_EQ(read_cluster_facts({folder.write("t.conf", "switchname=a nodes=n[1-4]\n")}).leaf_nodes, 4);
}

TEST(ClusterFacts, RefuseOtherFilesInALine) {
  EXPECT_NE(facts_error("hello\n").find("none of these"), std::string::npos);
  EXPECT_NE(facts_error("").find("none of these"), std::string::npos);
  EXPECT_NE(facts_error("{\"lldp\": 3}").find("lldpctl -f json"), std::string::npos);
}

}  // namespace
}  // namespace orrery
