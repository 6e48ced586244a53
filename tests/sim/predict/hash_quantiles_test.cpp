#include "sim/predict/hash_quantiles.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/quantile.h"
#include "models/base/random.h"
#include "models/load/load_spec.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

constexpr char kDense[] = "layers: 8, hidden: 4096, heads: 32, kv_heads: 8, feed_forward: 14336, vocab: 32000";
constexpr char kExperts[] =
    "layers: 8, hidden: 2048, heads: 16, kv_heads: 4, feed_forward: 8192, vocab: 32000, moe: {experts: 64, top_k: 6, "
    "feed_forward: 1024}";

Spec hashed_spec(const std::string& model, const std::string& network, const std::string& strategy) {
  return parse_spec(fmt::format("model: {{name: small, {}}}\nsequence: 2048\n"
                                "cluster: {{node: dgx-h100, nodes: 32, network: {{{}}}}}\n"
                                "software: megatron-core\nstrategy: {{{}}}\n",
                                model, network, strategy),
                    "case");
}

// Throws every queue pair of all switches on an uplink, and returns the share of hashes that make the fullest uplink
// no fuller.
double thrown_share(const HashedFlows& f, std::uint64_t seed) {
  std::uint64_t pair = 0;
  std::int64_t most = 0;
  for (std::int64_t s = 0; s < f.switches; ++s) {
    std::vector<std::int64_t> loads(f.uplinks, 0);
    for (std::int64_t i = 0; i < f.flows * f.queue_pairs; ++i)
      ++loads[mix_bits(mix_bits(seed) + ++pair) % static_cast<std::uint64_t>(f.uplinks)];
    most = std::max(most, *std::ranges::max_element(loads));
  }
  double share = 0;
  for (const LargestLoad& l : largest_loads(f)) {
    if (l.queue_pairs >= most) return share + l.probability / 2;
    share += l.probability;
  }
  return 1;
}

// Compares the quantiles of a report with those of steps whose queue pairs were thrown on uplinks one by one, for each
// set of connections apart. They differ by at most `spread` of the step.
void expect_as_thrown(const Spec& spec, double spread) {
  const Prediction p = predict(spec, profile_for(spec, ""));
  ASSERT_TRUE(p.report.hashes.has_value());
  const HashedStep step = {p.plan, spec, p.profile, p.costs};
  std::vector<double> steps;
  std::uint64_t seed = 0;
  for (int i = 0; i < 500; ++i) {
    HashDraw draw;
    for (const auto& [set, transfers] : p.costs.hashed) draw.shares[set] = thrown_share(transfers.flows, ++seed);
    steps.push_back(step.at(draw));
  }
  const StepQuantiles& found = *p.report.hashes;
  EXPECT_NEAR(found.p50 / quantile(steps, 0.5), 1, 0.01);
  EXPECT_NEAR(found.p95 / quantile(steps, 0.95), 1, 0.01);
  EXPECT_GT(found.p95, (1 + spread) * found.p50);
}

constexpr char kTree[] = "kind: fat-tree, leaf: {nodes: 4, uplinks: 16}, routing: {kind: ecmp, queue_pairs: 2}";
constexpr char kOneQueuePair[] = "leaf: {nodes: 4, uplinks: 2}, routing: {kind: ecmp}";
constexpr char kPlanes[] = "leaf: {nodes: 4}, planes: 2, routing: {kind: ecmp, queue_pairs: 4}";

TEST(HashQuantiles, OfADenseModelAreThoseOfThrownQueuePairs) {
  expect_as_thrown(hashed_spec(kDense, kTree, "tensor: 8, data: 32, sharding: zero1, global_batch: 64"), .01);
  expect_as_thrown(hashed_spec(kDense, kPlanes, "data: 64, sharding: zero3, global_batch: 128"), .01);
}

// Messages of two ways, gradients and the embedding's gradients meet collisions of their own.
TEST(HashQuantiles, OfAPipelineAreThoseOfThrownQueuePairs) {
  const char* strategy = "tensor: 4, pipeline: 4, data: 16, sharding: zero1, global_batch: 128";
  expect_as_thrown(hashed_spec(kDense, kOneQueuePair, strategy), 0);
  expect_as_thrown(hashed_spec(kDense, kTree, strategy), 0);
}

TEST(HashQuantiles, OfExpertsAreThoseOfThrownQueuePairs) {
  const char* strategy = "pipeline: 2, data: 64, expert: 64, global_batch: 256";
  expect_as_thrown(hashed_spec(kExperts, kTree, strategy), .05);
  expect_as_thrown(hashed_spec(kExperts, kOneQueuePair, strategy), 0);
  expect_as_thrown(hashed_spec(kExperts, kPlanes, strategy), .05);
}

TEST(HashQuantiles, OfEveryRankAreThoseOfTheFoldedPlan) {
  const Spec spec = hashed_spec(kDense, kTree, "tensor: 8, data: 32, sharding: zero1, global_batch: 64");
  const Report folded = predict(spec).report, whole = predict(spec, true).report;
  EXPECT_EQ(whole.hashes->p50, folded.hashes->p50);
  EXPECT_EQ(whole.hashes->p95, folded.hashes->p95);
}

// Steps of many micro-batches, which are derived from shorter ones with even routes, are simulated as a whole.
TEST(HashQuantiles, OfALongStepAreThoseOfAllOfIt) {
  const char* strategy = "tensor: 4, pipeline: 4, data: 16, sharding: zero1, global_batch: 1024";
  const Spec spec = hashed_spec(kDense, kTree, strategy);
  const Profile profile = profile_for(spec, "");
  const Report whole = predict(spec, profile).report, derived = predict_report(spec, profile);
  EXPECT_EQ(derived.hashes->p50, whole.hashes->p50);
  EXPECT_EQ(derived.hashes->p95, whole.hashes->p95);
}

// A seed's step is that of its draw; steps of many seeds lie around the mean. Even routes have no draws.
TEST(HashQuantiles, ASeedAsksForOneDraw) {
  const char* strategy = "tensor: 8, data: 32, sharding: zero1, global_batch: 64";
  const auto with = [&](const std::string& routing) {
    return predict(hashed_spec(kDense, "kind: fat-tree, leaf: {nodes: 4, uplinks: 16}, routing: " + routing, strategy))
        .report;
  };
  const Report mean = with("{kind: ecmp, queue_pairs: 2}");
  std::vector<double> steps;
  for (int seed = 1; seed <= 50; ++seed) {
    const Report drawn = with(fmt::format("{{kind: ecmp, queue_pairs: 2, seed: {}}}", seed));
    EXPECT_FALSE(drawn.hashes.has_value());
    steps.push_back(drawn.step_time_s);
  }
  EXPECT_LT(*std::ranges::min_element(steps), mean.step_time_s);
  EXPECT_GT(*std::ranges::max_element(steps), mean.hashes->p95 * .999);
  EXPECT_NEAR(quantile(steps, 0.5), mean.hashes->p50, 0.01 * mean.step_time_s);
  EXPECT_FALSE(with("{kind: adaptive}").hashes.has_value());
  EXPECT_EQ(with("{kind: adaptive, seed: 3}").step_time_s, with("{kind: adaptive}").step_time_s);
}

}  // namespace
}  // namespace orrery
