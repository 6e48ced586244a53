#include "models/cost/host_time.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Software stack() {
  Software software;
  software.host.launch_us = 4;
  software.host.call_us = 20;
  software.host.backward_call_share = 0.5;
  software.host.collective_launch_us = 12;
  return software;
}

Op product(Phase phase) { return {.name = "product", .work = Gemm{.m = 64, .n = 64, .k = 64}, .phase = phase}; }

TEST(HostTime, IsTheCallAndTheLaunch) {
  EXPECT_NEAR(host_time(product(Phase::forward), stack()), 24e-6, 1e-12);
  EXPECT_NEAR(host_time(product(Phase::backward), stack()), 14e-6, 1e-12) << "autograd calls";
  Op again = product(Phase::backward);
  again.recompute = true;
  EXPECT_NEAR(host_time(again, stack()), 24e-6, 1e-12) << "called as in forward";
  const Op sum = {.name = "sum", .work = Collective{.kind = CollectiveKind::all_reduce, .bytes = 1000}};
  EXPECT_NEAR(host_time(sum, stack()), 32e-6, 1e-12);
}

TEST(HostTime, GraphsAndCompilersSaveCalls) {
  Software software = stack();
  software.kernels.compile = true;
  EXPECT_NEAR(host_time(product(Phase::forward), software), 4e-6, 1e-12);
  software.kernels.cuda_graphs = true;
  EXPECT_EQ(host_time(product(Phase::forward), software), 0);
  software.kernels.cuda_graph_scope = GraphScope::attention;
  EXPECT_NEAR(host_time(product(Phase::forward), software), 4e-6, 1e-12) << "an op that no graph holds";
}

// The measured time of a profile from calibrate takes the place of a stack's, but for graphs, which launch all at once.
TEST(HostTime, AMeasuredTimeTakesTheStacksPlace) {
  Profile profile;
  Software software = stack();
  const Op op = product(Phase::forward);
  EXPECT_NEAR(issue_time(op, software, profile), 24e-6, 1e-12);
  profile.generates = true;
  EXPECT_NEAR(issue_time(op, software, profile), 4e-6, 1e-12);
  profile.measured.ops.emplace_back();
  profile.measured.issue = 7e-6;
  EXPECT_NEAR(issue_time(op, software, profile), 7e-6, 1e-12);
  software.kernels.cuda_graphs = true;
  EXPECT_EQ(issue_time(op, software, profile), 0);
  software.kernels.cuda_graphs = false;
  profile.rest_built_in = true;
  EXPECT_NEAR(issue_time(op, software, profile), 4e-6, 1e-12) << "an import has no launches";
}

// The kernels of one call, of a serving framework or of a CUDA graph in training, cost the host one launch.
TEST(HostTime, KernelsOfOneCallAreLaunchedOnce) {
  Profile profile;
  profile.generates = true;
  Op op = product(Phase::forward);
  op.same_call = true;
  EXPECT_EQ(issue_time(op, stack(), profile), 0);
  profile.generates = false;
  EXPECT_EQ(issue_time(op, stack(), profile), 0);
  Software graphs = stack();
  graphs.kernels.cuda_graphs = true;
  graphs.kernels.cuda_graph_scope = GraphScope::layer;
  profile.measured.ops.emplace_back();
  profile.measured.issue = 7e-6;
  EXPECT_EQ(issue_time(op, graphs, profile), 0) << "a graph launches it, however long a launch was measured to take";
}

// A layer's ops run again in full cost the layer's time again, whether or not its activations leave the device.
TEST(HostTime, OffloadedActivationsLeaveALayersTimeAlone) {
  Plan plan;
  plan.ops = {product(Phase::forward),
              product(Phase::backward),
              {.name = "down", .work = PlaceCopy{64, MemoryTier::device, MemoryTier::host}},
              {.name = "left", .work = Wait{}}};
  plan.ops[1].recompute = true;
  Block kept, leaves;
  kept.role = leaves.role = BlockRole::layer;
  kept.forward = {0};
  leaves.forward = {0, 2, 3};
  kept.backward = leaves.backward = {1};
  Software software = stack();
  software.host.layer_us = 100;
  for (const Block& block : {kept, leaves}) {
    EXPECT_NEAR(layer_host_time(plan, block, software).forward, 100e-6, 1e-12);
    EXPECT_NEAR(layer_host_time(plan, block, software).backward, 200e-6, 1e-12);
  }
}

}  // namespace
}  // namespace orrery
