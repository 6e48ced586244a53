// Layers of one model may differ: a table of tokens names the experts of some, and scores choose those of others.
#include "models/layers/layer_body.h"

#include <gtest/gtest.h>

#include "models/layout/placement.h"
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

// The names of the ops of one layer's pass that a call of their own launches.
std::vector<std::string> called(const std::string& scope, Phase phase) {
  const Spec spec = test::spec_of(
      "name: small, layers: 1, hidden: 64, heads: 8, vocab: 256, feed_forward: 96, moe: {experts: 4, top_k: 2, "
      "feed_forward: 32}",
      "global_batch: 1", 32, "profile: orrery, cuda_graphs: true, cuda_graph_scope: " + scope);
  const Plan plan = make_plan(spec);
  std::vector<std::string> names;
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    for (const std::uint32_t op : phase == Phase::forward ? block.forward : block.backward) {
      if (!plan.ops[op].same_call) names.push_back(plan.ops[op].name);
    }
  }
  return names;
}

// One call replays a graph; kernels that no graph holds are launched by calls of their own.
TEST(LayerBody, GraphsHoldWhatTheirScopeSays) {
  EXPECT_EQ(called("layer", Phase::forward), std::vector<std::string>{"attention norm"});
  EXPECT_EQ(called("layer", Phase::backward).size(), 1U);
  const std::vector<std::string> attention = called("attention", Phase::forward),
                                 router = called("router", Phase::forward),
                                 both = called("attention_and_router", Phase::forward),
                                 none = called("step", Phase::forward);
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has(none, "qkv") && has(none, "gate") && has(none, "experts up"));
  EXPECT_TRUE(has(attention, "attention norm") && !has(attention, "qkv") && has(attention, "gate"));
  EXPECT_TRUE(has(router, "qkv") && has(router, "mlp norm") && !has(router, "gate") && !has(router, "permute"));
  EXPECT_TRUE(has(both, "experts up") && !has(both, "qkv") && !has(both, "gate"));
  EXPECT_EQ(attention.size() + router.size(), both.size() + 1 + none.size()) << "one graph holds both parts";
}

}  // namespace
}  // namespace orrery
