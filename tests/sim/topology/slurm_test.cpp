#include <chrono>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

TEST(SlurmTopology, CountsNodesOfLeavesAndLeavesOfParts) {
  const ClusterFacts facts = slurm_topology(samples::kSlurm, "topology.conf");
  EXPECT_EQ(facts.nodes, 256);
  EXPECT_EQ(facts.leaf_nodes, 32);
  EXPECT_EQ(facts.spine_leaves, 4);
  EXPECT_EQ(facts.remarks.size(), 1U);
}

TEST(SlurmTopology, SaysWhereLeavesDifferAndWhatBlocksAre) {
  const ClusterFacts uneven =
      slurm_topology("SwitchName=a Nodes=x[1-4]\nSwitchName=b Nodes=x[5-6]y[1-3],z\n", "topology.conf");
  EXPECT_EQ(uneven.leaf_nodes, 7);
  ASSERT_EQ(uneven.remarks.size(), 2U);
  const ClusterFacts blocks =
      slurm_topology("BlockName=b0 Nodes=n[0-17]\nBlockName=b1 Nodes=n[18-35]\nBlockSizes=18\n", "topology.conf");
  EXPECT_EQ(blocks.nodes, 36);
  EXPECT_FALSE(blocks.leaf_nodes);
  ASSERT_EQ(blocks.remarks.size(), 1U);
}

TEST(SlurmTopology, RefusesListsOfNamesThatAreNone) {
  std::string many = "n[0-9999999";
  for (int i = 0; i < 100000; ++i) many += ",0-9999999";
  EXPECT_THROW(slurm_topology("SwitchName=a Nodes=" + many + "]\n", "topology.conf"), Error);
  EXPECT_THROW(slurm_topology("SwitchName=a Nodes=\n", "topology.conf"), Error);
  for (const char* nodes : {"n[0-", "n[3-1]", "n[a-b]", "n[0-99999999999]", "n[0-9999999]m[0-99]"})
    EXPECT_THROW(slurm_topology(std::string("SwitchName=a Nodes=") + nodes + "\n", "topology.conf"), Error) << nodes;
}

// Each line was once joined to the next by moving all that follow.
TEST(SlurmTopology, ManyContinuedLinesAreReadAtOnce) {
  std::string text = "SwitchName=s0 Nodes=n[0-3]";
  for (int i = 0; i < 1'000'000; ++i) text += " \\\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(slurm_topology(text, "topology.conf").nodes, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace orrery
