#include "sim/cost/host_overheads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/cost/costs.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

constexpr const char* kModel =
    "model: {name: small, layers: 16, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\nsequence: 1024\n"
    "cluster: {node: dgx-h100, nodes: 1}\n";

// Microseconds of host overhead added to the issue of all ops, each counted as often as the plan runs it.
double added_us(const std::string& strategy, const Software& software, double far_us) {
  const Plan plan = make_plan(parse_spec(kModel + ("strategy: {" + strategy + "}\n"), "case"));
  std::vector<OpTiming> row(plan.ops.size());
  add_host_overheads(plan, software, far_us, row);
  Picoseconds sum = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) sum += row[plan.tasks[t].op].issue;
  return static_cast<double>(sum) / 1e6;
}

TEST(HostOverheads, AreChargedOncePerLayerPassMicroBatchAndStep) {
  Software software;
  software.host.layer_us = 10;
  EXPECT_EQ(added_us("data: 1, global_batch: 1", software, 0), 2 * 16 * 10);
  EXPECT_EQ(added_us("data: 1, global_batch: 1", software, 5), 2 * 16 * 15);
  EXPECT_EQ(added_us("data: 1, global_batch: 3", software, 0), 3 * 2 * 16 * 10);
  software = {};
  software.host.micro_batch_us = 10;
  EXPECT_EQ(added_us("data: 1, global_batch: 3", software, 0), 3 * 2 * 10);
  software = {};
  software.host.step_us = 10;
  EXPECT_EQ(added_us("data: 1, global_batch: 3", software, 0), 10);
  software.host.rank_us = 1;
  EXPECT_EQ(added_us("data: 8, global_batch: 8", software, 0), 18);
}

// A stage that shares the vocabulary has lookups and logits beside its layers: one micro-batch, charged once.
TEST(HostOverheads, AreChargedOncePerMicroBatchOfAStage) {
  Software software;
  software.host.micro_batch_us = 10;
  for (const char* schedule : {"1f1b", "vocab-1f1b", "vocab-1f1b-alg1"})
    EXPECT_EQ(added_us("pipeline: 4, data: 1, global_batch: 8, schedule: " + std::string(schedule), software, 0),
              4 * 8 * 2 * 10)
        << schedule;
}

// A recomputed layer is issued again.
TEST(HostOverheads, AreChargedAgainForWhatRunsAgain) {
  Software software;
  software.host.layer_us = 10;
  EXPECT_NEAR(added_us("data: 1, global_batch: 1, recompute: full", software, 0), 3 * 16 * 10, 1e-3);
}

// A host that reads every step's loss is not ahead of the device at the end of a step, so the host time of once-a-step
// ops is exposed, whatever the step ends with: nothing, a norm, a scale of gradients, an update on the host.
TEST(HostOverheads, OnceAStepShowsWhereTheHostReadsTheLoss) {
  const auto step = [](const char* strategy, const char* reads, int step_us) {
    const Spec spec =
        parse_spec(fmt::format("{}strategy: {{{}}}\nsoftware: {{profile: orrery, blocking_steps: {}, step_us: {}}}\n",
                               kModel, strategy, reads, step_us),
                   "case");
    const Plan plan = make_plan(spec);
    return seconds(simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing).step_time);
  };
  for (const char* strategy :
       {"data: 1, global_batch: 1", "data: 8, global_batch: 8", "data: 8, global_batch: 8, clip: 0",
        "data: 8, global_batch: 8, precision: fp16", "data: 8, global_batch: 32, sharding: fsdp-grad-op",
        "pipeline: 2, data: 4, global_batch: 16",
        "data: 8, global_batch: 8, sharding: zero2, offload: {optimizer: cpu}"}) {
    EXPECT_NEAR(step(strategy, "true", 20'000) - step(strategy, "true", 0), 20e-3, 1e-6) << strategy;
  }
  const char* ahead = "data: 8, global_batch: 32, sharding: fsdp-grad-op";
  EXPECT_LT(step(ahead, "false", 2000) - step(ahead, "false", 0), 1000e-6);
}

// Woven, a layer's four parts are nodes of their own in each pass.
TEST(HostOverheads, WovenPassesHaveNodes) {
  Spec spec = parse_spec(kModel + std::string("strategy: {data: 1, global_batch: 1}\n"), "case");
  spec.software.host.call_us = 10;
  EXPECT_EQ(woven_us(spec), 0);
  spec.strategy.overlap.micro_batches = true;
  EXPECT_EQ(woven_us(spec), 160);
}

}  // namespace
}  // namespace orrery
