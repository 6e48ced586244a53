#include "models/planner/order_time.h"

#include <gtest/gtest.h>

#include "models/cost/kernel_time.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec spec_on(const std::string& cluster) {
  return parse_spec("{model: llama-3.2-1b, sequence: 1024, cluster: " + cluster +
                        ", gpus: 32, strategy: {tensor: 8, data: 4, global_batch: 8}}",
                    "spec.yaml");
}

const Op kProduct = {.name = "product", .work = Gemm{.m = 4096, .n = 4096, .k = 4096}};
const Op kSum = {.name = "sum", .work = Collective{.kind = CollectiveKind::all_reduce, .bytes = 50'000'000}};

// The duration of a kernel that orders of a pipeline assume is the duration that the simulator computes.
TEST(OrderTime, IsThatOfTheBuiltInProfile) {
  const Spec spec = spec_on("{node: dgx-h100, nodes: 4}");
  const Plan plan = make_plan(spec);
  const Gpu& gpu = spec.cluster.gpu;
  const Profile profile = find_profile(gpu);
  const double kernel =
      kernel_time(kProduct, 2, gpu, profile, name_in(kFlashKernels, spec.software.kernels.attention_kernel));
  OrderClock clock(spec, plan.dimensions);
  EXPECT_NEAR(clock.time(kProduct, 2), 1e9 * (kernel + profile.kernel_gap_us * kMicrosecond), 1);
  const Op copy = {.name = "copy",
                   .work = PlaceCopy{.bytes = 5000, .from = MemoryTier::device, .to = MemoryTier::host}};
  EXPECT_EQ(clock.time(copy, 2), 0) << "beside compute";
}

// A tensor group over two nodes waits for their network: an earlier version weighed phases by NVLink.
TEST(OrderTime, KnowsGroupsOfSeveralNodes) {
  const auto time = [](const std::string& cluster) {
    const Spec spec = spec_on(cluster);
    const Plan plan = make_plan(spec);
    return OrderClock(spec, plan.dimensions).time(kSum, 2);
  };
  const double near = time("{node: dgx-h100, nodes: 4}");
  const double far = time("{gpu: h100-sxm, gpus_per_node: 4, nics: 1, nic_Gbps: 100, fabric: roce, nodes: 8}");
  EXPECT_GT(near, 50'000'000 / 900.0);
  EXPECT_GT(far, 3 * near);
}

// With data ranks innermost their group lies on one node.
TEST(OrderTime, KnowsTheRankOrder) {
  const auto time = [](const std::string& order) {
    const Spec spec = parse_spec(
        "{model: llama-3.2-1b, sequence: 1024, cluster: {node: dgx-h100, nodes: 4}, gpus: 32, "
        "strategy: {tensor: 8, data: 4, global_batch: 8, rank_order: " +
            order + "}}",
        "spec.yaml");
    const Plan plan = make_plan(spec);
    return OrderClock(spec, plan.dimensions).time(kSum, 2);
  };
  EXPECT_GT(time("tp-cp-dp-pp"), 2 * time("dp-tp-cp-pp"));
}

// On a machine without known peak rates, phases are weighed by operations.
TEST(OrderTime, CountsOperationsElsewhere) {
  Spec spec = spec_on("{node: dgx-h100, nodes: 4}");
  const Plan plan = make_plan(spec);
  spec.cluster.gpu = Gpu{};
  EXPECT_DOUBLE_EQ(OrderClock(spec, plan.dimensions).time(kProduct, 2), 2.0 * 4096 * 4096 * 4096 * 1e-3);
}

}  // namespace
}  // namespace orrery
