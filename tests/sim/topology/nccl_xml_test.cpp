#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

TEST(NcclTopologyXml, HasGpusNicsAndTheSwitchThatTheyShare) {
  const ClusterFacts facts = nccl_topology_xml(samples::kNcclTopology, "topo.xml");
  EXPECT_EQ(facts.gpus_per_node, 2);
  EXPECT_EQ(facts.nvlink_domain, 2);
  EXPECT_EQ(facts.nics, 1);
  EXPECT_EQ(facts.nic_Gbps, 400);
  EXPECT_EQ(facts.gpus_per_pcie_switch, 2);
}

TEST(NcclTopologyXml, TellsPairsOfGpusFromSwitches) {
  const std::string gpu = "<gpu dev=\"0\"><nvlink target=\"1\" count=\"4\" tclass=\"0x030200\"/></gpu>";
  EXPECT_EQ(nccl_topology_xml("<system>" + gpu + gpu + gpu + gpu + "</system>", "t.xml").nvlink_domain, 2);
}

TEST(NcclTopologyXml, OfGraphsIsARemark) {
  const ClusterFacts facts = nccl_topology_xml(samples::kNcclGraphs, "graphs.xml");
  ASSERT_EQ(facts.remarks.size(), 1U);
  EXPECT_EQ(facts.remarks[0],
            "graphs.xml: graph 0 has 16 channels of 20 GB/s in a node, 24 GB/s between nodes; orrery calibrate "
            "--import makes a profile with these");
}

TEST(NcclTopologyXml, RefusesWhatNcclDoesNotWrite) {
  const auto refused = [](const std::string& text, std::string_view what) {
    try {
      nccl_topology_xml(text, "topo.xml");
      return false;
    } catch (const Error& e) {
      return std::string_view(e.what()).find(what) != std::string_view::npos;
    }
  };
  EXPECT_TRUE(refused("<system><gpu</system>", "topo.xml:1: is no XML"));
  EXPECT_TRUE(refused("<html></html>", "neither <system> nor <graphs>"));
  EXPECT_TRUE(refused("<system></system>", "no <gpu>"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<pci>";
  EXPECT_TRUE(refused(deep, "nested"));
  std::string hidden;
  for (int i = 0; i < 100000; ++i) hidden += "<pci a=\"/></x>\"><!-- </pci> -->";
  EXPECT_TRUE(refused(hidden, "nested"));
}

}  // namespace
}  // namespace orrery
