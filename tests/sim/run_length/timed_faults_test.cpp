#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/run_length/run_length.h"

namespace orrery {
namespace {

TEST(TimedFaults, HoldForTheirTime) {
  const Spec spec = parse_spec(
      "model: gpt2-xl\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 8, network: {leaf: {nodes: 2, uplinks: 1}, "
      "faults: [{nic: 1.3, down: [120, 180]}, {nic: 1.3, down: [200, 202]}, {node: 1, Gbps: 50, down: [300, 900]}, "
      "{node: 7, down: [1, 2]}]}}\nstrategy: {data: 32}\n",
      "faults.yaml");
  const Report report = predict_report(spec, find_profile(spec.cluster.gpu));
  const std::vector<FaultOfRun> faults = timed_faults_of(spec);
  ASSERT_EQ(faults.size(), 3) << "the job has nodes 0 to 3";
  EXPECT_TRUE(faults[0].fault.ends);
  EXPECT_EQ(faults[0].fault.what, "NIC 3 of node 1");
  EXPECT_FALSE(faults[1].fault.ends);
  EXPECT_NEAR(faults[1].fault.until - faults[1].fault.from, kResend_s, 1e-9);
  ASSERT_TRUE(faults[2].slow);
  EXPECT_GT(predict_report(*faults[2].slow, find_profile(spec.cluster.gpu)).step_time_s, 1.01 * report.step_time_s);
}

std::vector<FaultOfRun> faults_on_two_uplinks(const std::string& faults) {
  return timed_faults_of(parse_spec(
      "model: gpt2-xl\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 8, network: {leaf: {nodes: 2, uplinks: 2}, "
      "faults: [" +
          faults + "]}}\nstrategy: {data: 32}\n",
      "faults.yaml"));
}

// Faults that hold at once are one fault of its own, not two that add up.
TEST(TimedFaults, HoldTogetherWhereTheyOverlap) {
  const auto f = faults_on_two_uplinks("{node: 1, Gbps: 50, down: [100, 300]}, {node: 2, Gbps: 50, down: [200, 400]}");
  ASSERT_EQ(f.size(), 3);
  EXPECT_EQ(f[1].fault.what, "node 1, node 2");
  EXPECT_EQ(f[1].fault.from, 200);
  EXPECT_EQ(f[1].fault.until, 300);
  EXPECT_EQ(f[1].slow->cluster.network->faults.size(), 2);
  EXPECT_EQ(f[2].slow->cluster.network->faults.size(), 1);
}

TEST(TimedFaults, EndTheJobWhereTheyCutALeafOff) {
  const auto two = [](const char* until) {
    return faults_on_two_uplinks(
        fmt::format("{{leaf: 1, link: 0, down: [100, 900]}}, {{leaf: 1, link: 1, down: [200, {}]}}", until));
  };
  const std::vector<FaultOfRun> apart = two("300");
  ASSERT_EQ(apart.size(), 3);
  EXPECT_FALSE(apart[0].fault.ends);
  EXPECT_TRUE(apart[1].fault.ends) << "no uplink is left";
  EXPECT_FALSE(apart[1].slow);
  const std::vector<FaultOfRun> soon = two("203");
  EXPECT_FALSE(soon[1].fault.ends);
  EXPECT_EQ(soon[1].fault.lost, 1);
}

}  // namespace
}  // namespace orrery
