// Plans of models with several residual streams: weights, boundaries, passes over memory, multi-token prediction.
#include "models/layers/hyper_connections.h"

#include <set>

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kStreams = 4, kStreamWidth = 64, kStreamRows = 32;

Spec streamed(const std::string& strategy, const std::string& more = "") {
  return test::spec_of(fmt::format("{}, hyper_connections: {}{}", test::kSmall, kStreams, more), strategy, kStreamRows);
}

std::int64_t streamed_weights(const Plan& plan, std::size_t chunk = 0) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[chunk])) sum += p.local.out * p.local.in;
  return sum;
}

TEST(HyperConnections, WeightsAreThoseOfEveryBranchAndOfTheHead) {
  const Spec spec = streamed("global_batch: 1");
  constexpr std::int64_t kMixed = (2 + kStreams) * kStreams;
  const std::int64_t branch = kMixed * kStreams * kStreamWidth + kMixed + 3,
                     head = kStreams * kStreams * kStreamWidth + kStreams + 1;
  const std::int64_t plain = parameter_count(test::spec_of(test::kSmall, "global_batch: 1").model, 1);
  EXPECT_EQ(parameter_count(spec.model, 1), plain + 8 * 2 * branch + head);
  EXPECT_EQ(streamed_weights(make_plan(spec)), parameter_count(spec.model, 1));
}

// Layers hand on all streams, in a pipeline too; the output reads one stream.
TEST(HyperConnections, StagesSendAllStreams) {
  const Plan plan = make_plan(streamed("pipeline: 2, global_batch: 2"));
  int transfers = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* work = std::get_if<Transfer>(&plan.op_of(t).work);
    if (work == nullptr) continue;
    ++transfers;
    EXPECT_EQ(work->bytes, kStreamRows * kStreams * kStreamWidth * 2);
  }
  EXPECT_EQ(transfers, 8);
}

std::map<std::pair<MixStreams::Part, Direction>, std::vector<Cost>> stream_costs(const Plan& plan) {
  std::map<std::pair<MixStreams::Part, Direction>, std::vector<Cost>> costs;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (const auto* m = std::get_if<MixStreams>(&plan.op_of(t).work))
      costs[{m->part, m->direction}].push_back(cost_of(*m, 2));
  }
  return costs;
}

// Each of 8 layers has two branches, whose sums read n streams of hidden columns, and whose mixes read n + 1 and write
// n; the head has one more sum.
TEST(HyperConnections, PassesAreThoseOfFusedKernels) {
  const auto costs = stream_costs(make_plan(streamed("global_batch: 1")));
  const double row = kStreamRows * kStreamWidth, n = kStreams, weights = kStreamRows * (2 + n) * n;
  const auto& collapse = costs.at({MixStreams::Part::collapse, Direction::forward});
  const auto& mix = costs.at({MixStreams::Part::mix, Direction::forward});
  EXPECT_EQ(collapse.size(), 17U);
  EXPECT_EQ(mix.size(), 16U);
  EXPECT_DOUBLE_EQ(collapse.front().flops, 4 * n * row + weights * (5 + 2 * 20));
  EXPECT_DOUBLE_EQ(collapse.front().bytes, (n + 1) * row * 2 + 8 * weights);
  const Cost back = costs.at({MixStreams::Part::collapse, Direction::backward}).front();
  EXPECT_DOUBLE_EQ(back.bytes, (2 * n + 1) * row * 2 + 8 * weights);
  EXPECT_DOUBLE_EQ(mix.front().flops, 2 * (n * n + n) * row);
  EXPECT_DOUBLE_EQ(mix.front().bytes, (2 * n + 1) * row * 2 + 4 * weights);
  EXPECT_EQ(costs.at({MixStreams::Part::repeat, Direction::forward}).size(), 1U);
  EXPECT_EQ(costs.at({MixStreams::Part::repeat, Direction::backward}).size(), 1U);
}

// A prediction reads the streams before the final norm: its block has that norm, and ends in a sum of its own streams.
TEST(HyperConnections, PredictionsReadTheStreams) {
  const Spec spec = streamed("global_batch: 1", ", mtp_layers: 1");
  const Plan plan = make_plan(spec);
  std::int64_t module = 0;
  for (const Parameter& p : prediction_parameters(spec.model)) module += elements(p);
  EXPECT_EQ(streamed_weights(plan), parameter_count(spec.model, 1) + module);
  const auto costs = stream_costs(plan);
  EXPECT_EQ(costs.at({MixStreams::Part::add, Direction::forward}).size(), 1U);
  EXPECT_EQ(costs.at({MixStreams::Part::collapse, Direction::forward}).size(), 8 * 2 + 1 + 2 + 1U);
  int projections = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* g = std::get_if<Gemm>(&plan.op_of(t).work);
    if (g == nullptr || plan.op_of(t).name != "prediction hidden projection") continue;
    ++projections;
    EXPECT_EQ(g->m, kStreamRows * kStreams);
  }
  EXPECT_EQ(projections, 1);
}

TEST(HyperConnections, BranchesKeepBiasesAndDropout) {
  const Plan plan = make_plan(streamed("global_batch: 1", ", bias: true, dropout: 0.1"));
  int found = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* r = std::get_if<Residual>(&plan.op_of(t).work);
    if (r == nullptr || r->direction == Direction::backward || !r->bias) continue;
    ++found;
    EXPECT_FALSE(r->residual);
    EXPECT_TRUE(r->dropout);
  }
  EXPECT_EQ(found, 16);
}

}  // namespace
}  // namespace orrery
