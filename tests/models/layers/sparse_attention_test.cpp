// Plans of latent attention to the tokens that an index chooses.
#include "models/layers/sparse_attention.h"

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kSparseSequence = 64, kSparseTopK = 16;

Spec sparse(const std::string& strategy) {
  return test::spec_of(
      fmt::format(
          "name: sparse, layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 128, mla: {{q_lora_rank: 24, "
          "kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}}, indexer: {{heads: 4, "
          "head_dim: 16, top_k: {}}}",
          kSparseTopK),
      strategy, kSparseSequence);
}

TEST(SparseAttention, WeightsAreTheModelsCutByHeads) {
  for (const int tensor : {1, 2, 4}) {
    const Spec spec = sparse(fmt::format("tensor: {}, global_batch: 1", tensor));
    const Plan plan = make_plan(spec);
    std::int64_t expected = 0, planned = 0;
    for (const auto& list : {embedding_parameters(spec.model, 0), layer_parameters(spec.model, 0),
                             layer_parameters(spec.model, 1), head_parameters(spec.model)}) {
      for (const Parameter& p : list) expected += p.out * p.in / (p.partition == Partition::replicated ? 1 : tensor);
    }
    for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) planned += p.local.out * p.local.in;
    EXPECT_EQ(planned, expected) << tensor;
  }
}

// Attention sees the chosen keys, of kv_lora_rank + qk_rope_head_dim columns that all heads share; the index scores all
// earlier tokens in forward, and in backward the chosen ones.
TEST(SparseAttention, AttendsToTheChosenTokensAlone) {
  const Plan plan = make_plan(sparse("tensor: 2, global_batch: 1"));
  const double s = kSparseSequence, k = kSparseTopK, seen = s * (k - k * k / (2 * s));
  int attentions = 0, indexes = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (const auto* a = std::get_if<FlashAttention>(&plan.op_of(t).work)) {
      ++attentions;
      EXPECT_EQ(a->kv_heads, 1);
      const double forward = 2 * 4 * seen * (20 + 8 + 20);
      EXPECT_DOUBLE_EQ(cost_of(*a, 2).flops, a->direction == Direction::forward ? forward : 2.5 * forward);
    }
    if (const auto* i = std::get_if<IndexScores>(&plan.op_of(t).work)) {
      ++indexes;
      const double pair = 4 * (2 * 16 + 3);
      EXPECT_DOUBLE_EQ(cost_of(*i, 2).flops, pair * (i->direction == Direction::forward ? s * s / 2 : 3 * s * k));
    }
  }
  EXPECT_EQ(attentions, 4);
  EXPECT_EQ(indexes, 4);
}

// The index is trained by its own loss: the layer's input gets no gradient from it.
TEST(SparseAttention, TheIndexHasNoInputGradient) {
  const Plan plan = make_plan(sparse("global_batch: 1"));
  int weights = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const std::string& name = plan.op_of(t).name;
    EXPECT_TRUE(name != "index keys input gradient" && name != "index queries input gradient");
    weights += name == "index keys weight gradient" || name == "index queries weight gradient" ? 1 : 0;
  }
  EXPECT_EQ(weights, 4);
}

}  // namespace
}  // namespace orrery
