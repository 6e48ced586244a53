#include "sim/predict/checkpoint_flows.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/checkpoint.h"

namespace orrery {
namespace {

// Four nodes of 400 GB/s share a storage of 640 GB/s: each of a node's 8 NICs sends 160 of 400 Gb/s to it.
TEST(CheckpointFlows, OverTheTrainingsNicsSlowSteps) {
  const auto spec_of = [](const std::string& storage, const std::string& network = "") {
    return parse_spec("model: llama-3.2-1b\nsequence: 2048\ncluster: {node: dgx-h100, nodes: 4, storage: " + storage +
                          network +
                          "}\nstrategy: {sharding: fsdp, global_batch: 32, checkpoint: {every: 100, to: storage}}\n",
                      "t.yaml");
  };
  const auto cost_of = [](const Spec& spec) { return *predict_report(spec, profile_for(spec, "")).checkpoint; };
  const CheckpointCost apart = cost_of(spec_of("{GBps: 640}")), beside = cost_of(spec_of("{GBps: 640, path: backend}"));
  EXPECT_EQ(apart.step_in_flight, 0);
  EXPECT_EQ(beside.writing, apart.writing);
  EXPECT_GT(beside.slowed, 0);
  EXPECT_NEAR(beside.stall, apart.stall + beside.slowed, 1e-12);
  const Spec slow = spec_of("{GBps: 640}", ", network: {faults: {share: 1, Gbps: 240}}");  // 400 - 640 / 4 / 8 * 8
  EXPECT_NEAR(beside.step_in_flight, predict(slow).report.step_time_s, 1e-9);
  EXPECT_NEAR(beside.slowed,
              beside.writing * (1 - predict(spec_of("{GBps: 640}")).report.step_time_s / beside.step_in_flight), 1e-12);
  // A storage that could take all of a NIC gets half of it.
  const CheckpointCost half = cost_of(spec_of("{GBps: 64000, path: backend}"));
  EXPECT_NEAR(half.step_in_flight,
              predict(spec_of("{GBps: 1}", ", network: {faults: {share: 1, Gbps: 200}}")).report.step_time_s, 1e-9);
  EXPECT_NEAR(half.writing, static_cast<double>(half.of_node) / 200e9, 1e-9);
  // A storage of no rate worth the name changes no step.
  const CheckpointCost little = cost_of(spec_of("{GBps: 0.001, path: backend}"));
  EXPECT_NEAR(little.step_in_flight, predict(spec_of("{GBps: 1}")).report.step_time_s, 1e-6);
}

// Other jobs have 120 of the 400 Gb/s of each of a leaf's 4 uplinks, and the 16 NICs below send 16 each to the storage.
TEST(CheckpointFlows, ShareUplinksWithOtherJobs) {
  const auto in_flight = [](const std::string& cluster) {
    const Spec spec = parse_spec("model: llama-3.2-1b\nsequence: 2048\ncluster: {node: dgx-h100, nodes: 4, " + cluster +
                                     "}\nstrategy: {sharding: fsdp, global_batch: 32, checkpoint: {every: 100, to: "
                                     "storage}}\n",
                                 "t.yaml");
    const Report report = predict(spec).report;
    return report.checkpoint->step_in_flight > 0 ? report.checkpoint->step_in_flight : report.step_time_s;
  };
  EXPECT_NEAR(in_flight("storage: {GBps: 64, path: backend}, network: {leaf: {nodes: 2, uplinks: 4}, load: 0.3}"),
              in_flight("storage: {GBps: 64}, network: {leaf: {nodes: 2, uplinks: 4, Gbps: 216}, faults: {share: 1, "
                        "Gbps: 384}}"),
              1e-9);
}

// Steps between two checkpoints are slowed for as long as they last where writing lasts longer.
TEST(CheckpointFlows, SlowStepsNoLongerThanTheyLast) {
  Spec spec = parse_spec(
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 2, storage: {GBps: 16, path: backend}}\n"
      "strategy: {data: 16, checkpoint: {every: 50, to: storage}}\n",
      "t.yaml");
  CheckpointCost cost{.copies = 1, .writing = 100};
  slow_steps(cost, spec, 1, 2);
  EXPECT_DOUBLE_EQ(cost.slowed, 50);
  EXPECT_DOUBLE_EQ(cost.stall, 1 + 50);
  cost = {.copies = 1, .writing = 300};
  slow_steps(cost, spec, 1, 2);
  EXPECT_DOUBLE_EQ(cost.stall, 1 + 200 + 50);
}

TEST(CheckpointFlows, AreNoneOfOtherCheckpoints) {
  const auto flows = [](const std::string& storage, const std::string& checkpoint) {
    return while_a_checkpoint_leaves(parse_spec(
        "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 2, nvme: {write_GBps: 10}, storage: " + storage +
            "}\nstrategy: {data: 16, checkpoint: " + checkpoint + "}\n",
        "t.yaml"));
  };
  const std::optional<Spec> beside = flows("{GBps: 16, path: backend}", "{to: storage}");
  ASSERT_TRUE(beside.has_value());
  EXPECT_DOUBLE_EQ(beside->cluster.network->storage_Gbps, 8);  // of 8 NICs of a node that has half of 16 GB/s
  EXPECT_FALSE(beside->strategy.checkpoint);
  EXPECT_FALSE(flows("{GBps: 16}", "{to: storage}"));
  EXPECT_FALSE(flows("{GBps: 16, path: backend}", "{to: nvme}"));
  EXPECT_FALSE(flows("{GBps: 16, path: backend}", "{to: storage, asynchronous: false}"));
}

// A step that is derived from shorter ones has the same cost as one that is simulated whole.
TEST(CheckpointFlows, AreThoseOfLongStepsToo) {
  const Spec spec = parse_spec(
      "model: {layers: 2, hidden: 1024, heads: 8, feed_forward: 4096, vocab: 1024}\nsequence: 1024\ncluster: {node: "
      "dgx-h100, nodes: 2, storage: {GBps: 160, path: backend}}\nstrategy: {data: 16, sharding: fsdp, global_batch: "
      "1600, "
      "checkpoint: {every: 100, to: storage}}\n",
      "t.yaml");
  const Profile profile = profile_for(spec, "");
  const CheckpointCost a = *predict_report(spec, profile).checkpoint, b = *predict(spec, profile).report.checkpoint;
  EXPECT_GT(b.step_in_flight, 0);
  EXPECT_DOUBLE_EQ(a.step_in_flight, b.step_in_flight);
  EXPECT_DOUBLE_EQ(a.stall, b.stall);
  EXPECT_DOUBLE_EQ(a.run_share, b.run_share);
}

}  // namespace
}  // namespace orrery
