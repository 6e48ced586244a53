#include "sim/report/goodput.h"
#include "models/load/load_spec.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

TEST(Goodput, BestIntervalIsYoungsForShortCheckpoints) {
  const FailurePlan plan{.between_failures = 1e6, .checkpoint = 1};
  EXPECT_NEAR(best_interval(plan), std::sqrt(2e6), 0.01 * std::sqrt(2e6));
}

TEST(Goodput, NoIntervalIsBetterThanTheBest) {
  for (const double checkpoint : {1.0, 30.0, 300.0}) {
    FailurePlan plan{.between_failures = 10800, .checkpoint = checkpoint, .restart = 600};
    plan.interval = best_interval(plan);
    const double best = goodput(plan);
    for (const double factor : {0.25, 0.5, 0.8, 1.25, 2.0, 4.0}) {
      FailurePlan other = plan;
      other.interval *= factor;
      EXPECT_LE(goodput(other), best * 1.0005) << checkpoint << " " << factor;
    }
  }
}

TEST(Goodput, IsOneWithoutFailuresAndFallsWithThem) {
  EXPECT_EQ(goodput({}), 1);
  const FailurePlan few{.between_failures = 1e6, .checkpoint = 30, .restart = 600};
  const FailurePlan many{.between_failures = 1e4, .checkpoint = 30, .restart = 600};
  EXPECT_LT(goodput(many), goodput(few));
  EXPECT_LT(goodput(few), 1);
}

// For a node without a disk rate, or a cluster without restart times, goodput is reported as an upper bound.
TEST(Goodput, SaysWhatIsNotKnown) {
  Cluster cluster = find_cluster("dgx-h100", 2);
  const FailurePlan known = failure_plan(cluster, 2, 1e12, 5);
  EXPECT_TRUE(known.checkpoint && !known.restart);
  EXPECT_FALSE(known.is_complete());
  cluster.failures = Failures{.node_mtbf_hours = 1000, .restart_s = 600};
  EXPECT_TRUE(failure_plan(cluster, 2, 1e12, 5).is_complete());
  cluster.stores[index_of(MemoryTier::nvme)].reset();
  EXPECT_FALSE(failure_plan(cluster, 2, 1e12, 5).checkpoint);
  EXPECT_FALSE(failure_plan(cluster, 2, 1e12, 5).is_complete());
}

// Mixed precision: weights, a wider master copy, two moments; fp32 weights are their own master copy.
TEST(Goodput, CheckpointHasWhatARunGoesOnFrom) {
  const auto bytes_of = [](const char* precision) {
    const Spec spec = parse_spec(
        std::string("model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {precision: ") + precision + "}\n",
        "t.yaml");
    return checkpoint_bytes(spec) / static_cast<double>(parameter_count(spec.model, spec.sequence));
  };
  EXPECT_EQ(bytes_of("bf16"), 14);
  EXPECT_EQ(bytes_of("fp32"), 12);
}

TEST(Goodput, Llama405BFailsEveryThreeHours) {
  const FailurePlan plan = failure_plan(find_cluster("dgx-h100", 2048), 2048, 14 * 405e9, 5);
  EXPECT_NEAR(plan.between_failures / 3600, 3.1, 0.05);  // 419 in 54 days
  const Spec spec = parse_spec(
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 2048, failures: {restart_s: 600}}\n", "t.yaml");
  EXPECT_EQ(failure_plan(spec.cluster, 2048, 14 * 405e9, 5).between_failures, plan.between_failures);
}

}  // namespace
}  // namespace orrery
