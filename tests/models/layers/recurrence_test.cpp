// Plans of layers with a recurrence: weights, work, what is kept, kinds of layers.
#include "models/layers/recurrence.h"

#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kRecurrenceSequence = 32;

Spec hybrid(const std::string& rule, const std::string& kinds, const std::string& strategy) {
  return test::spec_of(
      fmt::format("name: hybrid, layers: 4, hidden: 64, heads: 8, kv_heads: 4, vocab: 256, feed_forward: 128, "
                  "attention_gate: true, layer_kinds: {}, recurrence: {{rule: {}, heads: 16, groups: 8, key_dim: 6, "
                  "value_dim: 10, chunk: 8}}",
                  kinds, rule),
      strategy, kRecurrenceSequence);
}

std::int64_t planned_weights(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) sum += p.local.out * p.local.in;
  return sum;
}

TEST(Recurrence, WeightsAreTheModelsCutByHeads) {
  for (const char* rule : {"gated_delta", "state_space"}) {
    for (const char* kinds : {"[recurrence, attention]", "[recurrence_alone, feed_forward, attention_alone]"}) {
      for (const int tensor : {1, 2, 4}) {
        const Spec spec = hybrid(rule, kinds, fmt::format("tensor: {}, global_batch: 1", tensor));
        std::int64_t expected = 0;
        const auto add = [&](const std::vector<Parameter>& list) {
          for (const Parameter& p : list)
            expected += p.out * p.in / (p.partition == Partition::replicated ? 1 : tensor);
        };
        add(embedding_parameters(spec.model, 0));
        for (std::int64_t layer = 0; layer < 4; ++layer) add(layer_parameters(spec.model, layer));
        add(head_parameters(spec.model));
        EXPECT_EQ(planned_weights(make_plan(spec)), expected) << rule << " " << kinds << " " << tensor;
      }
    }
  }
}

std::set<std::string> ops_of_layer(const Plan& plan, std::int32_t layer) {
  std::set<std::string> names;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (plan.frames[plan.tasks[t].frame].layer == layer && plan.op_of(t).phase == Phase::forward)
      names.insert(plan.op_of(t).name);
  }
  return names;
}

TEST(Recurrence, EveryLayerHasThePartsOfItsKind) {
  const Plan plan = make_plan(hybrid("gated_delta", "[recurrence, attention_alone, feed_forward]", "global_batch: 1"));
  const auto has = [&](std::int32_t layer, const char* op) { return ops_of_layer(plan, layer).contains(op); };
  EXPECT_TRUE(has(0, "recurrence") && has(0, "mlp up") && !has(0, "attention"));
  EXPECT_TRUE(has(1, "attention") && has(1, "attention gate") && !has(1, "mlp up"));
  EXPECT_TRUE(has(2, "mlp up") && !has(2, "attention") && !has(2, "recurrence"));
  EXPECT_TRUE(has(3, "recurrence") && has(3, "mlp up"));
}

// The delta rule in chunks of c tokens: 2 c (3 k + 2 v) + 6 k v operations a token and head, three times as many
// backward.
TEST(Recurrence, OperationsAreThoseOfItsChunks) {
  const Plan plan = make_plan(hybrid("gated_delta", "[recurrence]", "global_batch: 1, tensor: 2"));
  int found = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* s = std::get_if<Scan>(&plan.op_of(t).work);
    if (s == nullptr) continue;
    ++found;
    const double forward = 8.0 * kRecurrenceSequence * (2 * 8 * (3 * 6 + 2 * 10) + 6 * 6 * 10);
    EXPECT_DOUBLE_EQ(cost_of(*s, 2).flops, s->direction == Direction::forward ? forward : 3 * forward);
  }
  EXPECT_EQ(found, 8);
}

// Mamba's kernels keep the projection, and run the convolution again; those of the delta rule keep its result, and what
// their chunks have computed.
TEST(Recurrence, KeepsWhatTheKernelsOfItsRuleKeep) {
  const auto again = [](const char* rule) {
    const Plan plan = make_plan(hybrid(rule, "[recurrence]", "global_batch: 1"));
    std::set<std::string> names;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (plan.op_of(t).recompute) names.insert(plan.op_of(t).name);
    }
    return names;
  };
  EXPECT_EQ(again("state_space"), (std::set<std::string>{"convolution again"}));
  EXPECT_EQ(again("gated_delta"), std::set<std::string>());
  const Scan delta = {.batch = 1, .sequence = 32, .heads = 4, .groups = 2, .key_dim = 6, .value_dim = 10, .chunk = 8};
  EXPECT_EQ(delta.kept_bytes(2), 32 * 4 * ((2 * 6 + 8) * 2 + 8));
}

TEST(Recurrence, TensorRanksMustDivideItsHeadsAndGroups) {
  try {
    hybrid("gated_delta", "[recurrence]", "global_batch: 1, tensor: 16");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("tensor: 16 does not divide"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace orrery
