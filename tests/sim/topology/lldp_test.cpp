#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "tests/sim/topology/samples.h"

namespace orrery {
namespace {

TEST(LldpNeighbours, NameTheLeafOfEachInterface) {
  const ClusterFacts facts = lldp_neighbours(samples::kLldp, "a.json");
  EXPECT_EQ(facts.nics, 2);
  EXPECT_EQ(facts.kind, NetworkKind::rails);
  EXPECT_EQ(facts.hosts_on_leaf.size(), 2U);
}

TEST(LldpNeighbours, OfOneInterfaceAreAMap) {
  const ClusterFacts facts = lldp_neighbours(
      R"({"lldp": {"interface": {"eth0": {"chassis": {"id": {"type": "mac", "value": "00:01"}}}}}})", "a.json");
  EXPECT_EQ(facts.nics, 1);
  EXPECT_FALSE(facts.kind);
  EXPECT_THROW(lldp_neighbours("{}", "a.json"), Error);
  EXPECT_THROW(lldp_neighbours("{\"lldp\": {\"interface\": " + std::string(300000, '['), "a.json"), Error);
  EXPECT_THROW(lldp_neighbours(R"({"lldp": {"interface": []}})", "a.json"), Error);
}

}  // namespace
}  // namespace orrery
