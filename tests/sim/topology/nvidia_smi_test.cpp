#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

TEST(NvidiaSmiTopology, HasGpusTheirNvlinksAndTheNicsNearThem) {
  const ClusterFacts facts = nvidia_smi_topology(samples::kNvidiaSmi, "topo.txt");
  EXPECT_EQ(facts.gpus_per_node, 4);
  EXPECT_EQ(facts.nvlink_domain, 4);
  EXPECT_EQ(facts.nics, 2);  // the third is far from every GPU
  EXPECT_EQ(facts.gpus_per_pcie_switch, 2);
  ASSERT_EQ(facts.remarks.size(), 1U);
}

TEST(NvidiaSmiTopology, OfGpusWithoutNvlinkAndOldNamesOfNics) {
  const ClusterFacts facts = nvidia_smi_topology(
      "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tPHB\tSYS\t0-7\nGPU1\tPHB\t X \tSYS\t0-7\nmlx5_0\tSYS\tSYS\t X \n",
      "topo.txt");
  EXPECT_EQ(facts.gpus_per_node, 2);
  EXPECT_EQ(facts.nvlink_domain, 0);
  EXPECT_EQ(facts.nics, 1);
  EXPECT_FALSE(facts.gpus_per_pcie_switch);
  EXPECT_THROW(nvidia_smi_topology("GPU0 is here\n", "topo.txt"), Error);
}

TEST(NvidiaSmiTopology, OfOneGpuOfAMeshAndOfTwoSwitchesOnTheWay) {
  EXPECT_EQ(nvidia_smi_topology("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t0\n", "t").gpus_per_node, 1);
  const ClusterFacts mesh = nvidia_smi_topology(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\nGPU0\t X \tNV1\tSYS\tNV2\tPXB\nGPU1\tNV1\t X \tNV2\tSYS\tPXB\n"
      "GPU2\tSYS\tNV2\t X \tNV1\tSYS\nGPU3\tNV2\tSYS\tNV1\t X \tSYS\nmlx5_0\tPXB\tPXB\tSYS\tSYS\t X \n",
      "topo.txt");
  EXPECT_EQ(mesh.nvlink_domain, 4);
  EXPECT_EQ(mesh.gpus_per_pcie_switch, 2);
}

// Sets of GPUs are joined pair by pair, which took hours for as many rows as a file can hold.
TEST(NvidiaSmiTopology, MoreGpusThanANodeHasAreRefused) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("GPU{} NV1 X\n", i);
  EXPECT_THROW(nvidia_smi_topology(text, "topo.txt"), Error);
}

}  // namespace
}  // namespace orrery
