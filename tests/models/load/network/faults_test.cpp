#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Network with_faults(const std::string& faults) {
  return *parse_spec(
              "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 64, network: {leaf: {nodes: 4, "
              "uplinks: 4}, planes: 2, faults: [" +
                  faults + "]}}\nstrategy: {data: 8}\n",
              "faults.yaml")
              .cluster.network;
}

std::string fault_refusal(const std::string& faults) {
  try {
    with_faults(faults);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Faults, NameNicsAndLinks) {
  const LinkFault nic = with_faults("{nic: 17.3, Gbps: 100}").faults.front();
  EXPECT_EQ(nic.node, 17);
  EXPECT_EQ(nic.nic, 3);
  EXPECT_EQ(nic.Gbps, 100);
  const LinkFault beside = with_faults("{node: 17, nic: 3, Gbps: 100}").faults.front();
  EXPECT_EQ(beside.node, 17);
  EXPECT_EQ(beside.nic, 3);
  for (const char* link : {"{link: leaf 3 - spine 2, Gbps: 150}", "{leaf: 3, link: 2, Gbps: 150}"}) {
    const LinkFault fault = with_faults(link).faults.front();
    EXPECT_EQ(fault.leaf, 3);
    EXPECT_EQ(fault.link, 2);
    EXPECT_EQ(fault.Gbps, 150);
  }
}

TEST(Faults, HoldForATimeOfARun) {
  const Network n = with_faults("{nic: 17.3, down: [120, 180]}, {node: 2, Gbps: 100, down: [5, 6.5]}");
  EXPECT_TRUE(n.faults.empty()) << "they change no step";
  ASSERT_EQ(n.timed_faults.size(), 2);
  EXPECT_TRUE(n.timed_faults[0].stops);
  EXPECT_EQ(n.timed_faults[0].from_s, 120);
  EXPECT_FALSE(n.timed_faults[1].stops);
  EXPECT_EQ(n.timed_faults[1].until_s, 6.5);
  EXPECT_TRUE(with_faults("{leaf: 3, down: [1, 2]}").timed_faults.front().stops);
  EXPECT_FALSE(with_faults("{plane: 1, down: [1, 2]}").timed_faults.front().stops);
  const TimedFault link = with_faults("{leaf: 3, link: 1, down: [1, 2]}").timed_faults.front();
  EXPECT_FALSE(link.stops) << "the other uplinks carry all";
  EXPECT_EQ(link.fault.link, 1);
  EXPECT_EQ(link.fault.Gbps, 0);
}

TEST(Faults, SayWhatIsWrong) {
  const auto refused = [](const char* fault, const char* what) {
    EXPECT_NE(fault_refusal(fault).find(what), std::string::npos) << fault << ": " << fault_refusal(fault);
  };
  refused("{nic: 17.8, Gbps: 100}", "NIC 8 is not one of 0 to 7");
  refused("{nic: 64.1, Gbps: 100}", "node 64 is not one of 0 to 63");
  refused("{nic: seventeen, Gbps: 100}", "faults.nic: seventeen is not NODE.NIC; or give the node beside it");
  refused("{nic: 17.3}", "a node or nic with Gbps");
  refused("{nic: 17.3, uplinks: 2}", "a node or nic with Gbps");
  refused("{nic: 17.3, plane: 1}", "a node or nic with Gbps");
  refused("{link: leaf 3 - spine 4, Gbps: 100}", "link 4 is not one of 0 to 3");
  refused("{link: 3 to 4, Gbps: 100}", "is not leaf LEAF - spine LINK; or give the leaf beside it");
  refused("{leaf: 3, link: 2, Gbps: 401}", "401 Gbps is no rate from 0 (down) to an uplink's, 200");
  refused("{leaf: 3, link: 2, uplinks: 1}", "a node or nic with Gbps");
  refused(
      "{leaf: 3, link: 0, Gbps: 0}, {leaf: 3, link: 1, Gbps: 0}, {leaf: 3, link: 2, Gbps: 0}, {leaf: 3, link: 3, "
      "Gbps: 0}",
      "no uplink of leaf 3 is left that works");
  refused("{nic: 17.3, down: 120}", "faults.down: begin and end in seconds");
  refused("{nic: 17.3, down: [180, 120]}", "180 to 120 s is no time of a run");
  refused("{node: 1, leaf: 1, down: [1, 2]}", "a node or nic with Gbps");
}

}  // namespace
}  // namespace orrery
