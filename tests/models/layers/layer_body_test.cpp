// Layers of one model may differ: a table of tokens names the experts of some, and scores choose those of others.
#include "models/layers/layer_body.h"

#include <gtest/gtest.h>

#include "models/layers/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec hashed_spec(const std::string& strategy, const std::string& moe = "") {
  return test::spec_of(
      fmt::format("{}, moe: {{experts: 8, top_k: 2, feed_forward: 32, score: sigmoid, correction_bias: "
                  "true, hash_layers: 3{}}}",
                  test::kSmall, moe),
      strategy);
}

std::vector<Gate> forward_gates(const Plan& plan) {
  std::vector<Gate> gates;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* g = std::get_if<Gate>(&plan.op_of(t).work);
    if (g != nullptr && g->direction == Direction::forward) gates.push_back(*g);
  }
  return gates;
}

// The router's product weighs the experts of a hashed layer too, so that its weights train; no bias corrects a choice.
TEST(LayerBody, TheFirstLayersTakeTheirExpertsFromATable) {
  const Spec spec = hashed_spec("global_batch: 1");
  const Plan plan = make_plan(spec);
  const std::vector<Gate> gates = forward_gates(plan);
  ASSERT_EQ(gates.size(), 8U);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    EXPECT_EQ(gates[i].hashed, i < 3) << i;
    EXPECT_EQ(gates[i].corrected, i >= 3) << i;
    EXPECT_EQ(gates[i].aux_loss > 0, i >= 3) << i;
  }
  std::int64_t planned = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) planned += p.local.out * p.local.in;
  EXPECT_EQ(planned, parameter_count(spec.model, 1));
  EXPECT_EQ(parameter_count(hashed_spec("global_batch: 1", ", first_layer: 0").model, 1) + 3 * 8,
            parameter_count(test::spec_of(fmt::format("{}, moe: {{experts: 8, top_k: 2, feed_forward: 32, "
                                                      "correction_bias: true}}",
                                                      test::kSmall),
                                          "global_batch: 1")
                                .model,
                            1));
}

// A table of tokens loads all experts alike, whatever imbalance the router's choices have.
TEST(LayerBody, TablesLoadAllExpertsAlike) {
  const Spec spec = hashed_spec("data: 4, expert: 4, global_batch: 4", ", imbalance: 2");
  const std::int64_t choices = 32 * 2;
  EXPECT_EQ(expert_sizes(spec, 0, 32).received, choices);
  EXPECT_EQ(expert_sizes(spec, 3, 32).received, 2 * choices);
}

// Experts are spread over ranks, and each rank has its part of them in hashed layers as in others.
TEST(LayerBody, ExpertsAreSpreadOverRanks) {
  const Spec spec = hashed_spec("data: 4, expert: 4, global_batch: 4");
  const Plan plan = make_plan(spec);
  std::int64_t expected = 0, planned = 0;
  for (std::int64_t layer = 0; layer < 8; ++layer) {
    for (const Parameter& p : layer_parameters(spec.model, layer)) expected += elements(p) / (p.experts > 0 ? 4 : 1);
  }
  for (const auto& list : {embedding_parameters(spec.model, 0), head_parameters(spec.model)}) {
    for (const Parameter& p : list) expected += elements(p);
  }
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) planned += p.local.out * p.local.in;
  EXPECT_EQ(planned, expected);
}

}  // namespace
}  // namespace orrery
