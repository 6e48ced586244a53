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

}  // namespace
}  // namespace orrery
