#include "sim/predict/step_quantiles.h"

#include <gtest/gtest.h>

#include "models/base/quantile.h"
#include "models/load/load_spec.h"
#include "models/spec/sharding.h"
#include "sim/predict/every_rank.h"

namespace orrery {
namespace {

Spec varied(const std::string& strategy, const std::string& variation) {
  return parse_spec(
      "model: {name: small, layers: 8, hidden: 8192, heads: 64, kv_heads: 8, feed_forward: 28672, vocab: 32000}\n"
      "sequence: 2048\ncluster: {node: dgx-h100, nodes: 64, variation: {" +
          variation + "}}\nsoftware: megatron-core\nstrategy: {" + strategy + "}\n",
      "case");
}

Prediction predicted_report(const Spec& spec) { return predict(spec, profile_for(spec, "")); }

TEST(StepQuantiles, SetsInLockstepFollowTheGroupsThatMeetInLayers) {
  const auto sets = [](const std::string& strategy) {
    const Spec spec = varied(strategy, "gpus: 0.03");
    return lockstep_of(predicted_report(spec).plan, row_of(spec.strategy.sharding).shards_parameters);
  };
  const Lockstep tensor = sets("tensor: 4, pipeline: 2, data: 4, global_batch: 16");
  EXPECT_EQ(std::tuple(tensor.ranks, tensor.replicas, tensor.stages), std::tuple(4, 4, 2));
  const Lockstep sharded = sets("pipeline: 2, data: 8, sharding: zero3, global_batch: 16");
  EXPECT_EQ(std::tuple(sharded.ranks, sharded.replicas, sharded.stages), std::tuple(8, 1, 2));
}

TEST(StepQuantiles, OfEveryRankAreThoseOfTheFoldedPlan) {
  for (const char* strategy :
       {"data: 8, sharding: zero3, global_batch: 16", "data: 8, sharding: zero1, global_batch: 16"}) {
    const Spec spec = varied(strategy, "gpus: 0.03, kernels: 0.02");
    const Report folded = predict(spec).report, whole = predict(spec, true).report;
    EXPECT_EQ(whole.variation->p50, folded.variation->p50) << strategy;
    EXPECT_EQ(whole.variation->p95, folded.variation->p95) << strategy;
  }
}

// A step of ranks without a pipeline is as long as its slowest rank makes it.
TEST(StepQuantiles, WithoutAPipelineTheSlowestOfAllRanksDecides) {
  const auto at = [](int data) {
    const Spec spec =
        varied("data: " + std::to_string(data) + ", global_batch: " + std::to_string(4 * data), "gpus: 0.03");
    const Report r = predicted_report(spec).report;
    return *r.variation;
  };
  const StepQuantiles one = at(1), many = at(64);
  EXPECT_LT(one.p50, one.p95);
  EXPECT_LT(many.p95 - many.p50, one.p95 - one.p50);
}

// Kernels alone lengthen the step itself; without a spread of GPUs there are no quantiles.
TEST(StepQuantiles, KernelsThatDifferLengthenTheStep) {
  const Report alike = predicted_report(varied("tensor: 8, data: 1, global_batch: 8", "kernels: 0")).report;
  const Report differ = predicted_report(varied("tensor: 8, data: 1, global_batch: 8", "kernels: 0.05")).report;
  EXPECT_FALSE(differ.variation.has_value());
  EXPECT_GT(differ.step_time_s, alike.step_time_s);
}

void expect_as_by_every_rank(const std::string& strategy, const std::string& variation, int draws, int layers = 8) {
  Spec spec = varied(strategy, variation);
  spec.model.layers = layers;
  const Profile profile = profile_for(spec, "");
  const Report r = predict(spec, profile).report;
  EveryRank every(spec, profile);
  std::vector<double> steps;
  for (int i = 0; i < draws; ++i) steps.push_back(every.step(static_cast<std::uint64_t>(i)));
  EXPECT_NEAR(r.variation->p50 / quantile(steps, 0.5), 1, 0.01) << strategy;
  EXPECT_NEAR(r.variation->p95 / quantile(steps, 0.95), 1, 0.01) << strategy;
}

TEST(StepQuantiles, AreThoseOfDrawsOfEveryRank) {
  expect_as_by_every_rank("tensor: 8, data: 4, sharding: zero1, global_batch: 8", "gpus: 0.05, kernels: 0.05", 60, 2);
  expect_as_by_every_rank("tensor: 2, pipeline: 4, data: 4, sharding: zero1, global_batch: 32", "gpus: 0.05", 100, 4);
  expect_as_by_every_rank("tensor: 2, pipeline: 8, data: 4, sharding: zero1, global_batch: 32", "gpus: 0.05", 50);
}

// Ranks that are out of step crowd each other's transfers: each meets a transfer with other work at other memory loads,
// and the transfer is as slow as the most crowded of them makes it.
TEST(StepQuantiles, RanksOutOfStepCrowdTheirTransfers) {
  expect_as_by_every_rank("data: 32, global_batch: 64", "gpus: 0.05, kernels: 0.05", 60, 2);
  expect_as_by_every_rank("data: 32, sharding: zero3, global_batch: 64", "gpus: 0.05, kernels: 0.02", 60, 2);
  expect_as_by_every_rank("pipeline: 2, data: 16, sharding: zero3, global_batch: 32", "gpus: 0.05", 60, 2);
}

// The last stage has the output layer besides, so that the first has time to spare: it is not what a faster job waits
// for. With few ranks most stages are faster than the slowest of eight GPUs, as whose the step is reported.
TEST(StepQuantiles, OfUnevenStagesFollowTheSlowerOne) {
  expect_as_by_every_rank("pipeline: 2, data: 2, sharding: zero1, global_batch: 8", "gpus: 0.05, kernels: 0.03", 200,
                          2);
}

// Ranks that wait for the slowest GPU of their tensor group have waited for most of its neighbours' slow kernels too.
TEST(StepQuantiles, OfGpusAndKernelsAreLessThanBothTogether) {
  expect_as_by_every_rank("tensor: 4, pipeline: 4, data: 4, sharding: zero1, global_batch: 32",
                          "gpus: 0.05, kernels: 0.03", 40, 4);
}

// Kernels alone make the ranks of plain data parallelism late, by the deviation of all of a step's kernels together.
TEST(StepQuantiles, KernelsOfAStepAddUpWhereRanksMeetOnce) {
  expect_as_by_every_rank("data: 16, global_batch: 64", "gpus: 0.001, kernels: 0.2", 60, 1);
}

}  // namespace
}  // namespace orrery
