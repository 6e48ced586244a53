// Plans of layers with latent attention: weights, products, exchanges between tensor ranks, recomputation.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layout/placement.h"
#include "models/spec/model.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kLatentHidden = 64, kLatentHeads = 8, kLatentSequence = 32;

Spec latent_spec(std::int64_t query_rank, const std::string& strategy) {
  return test::spec_of(
      fmt::format("name: latent, layers: 2, hidden: {}, heads: {}, vocab: 256, feed_forward: 128, mla: {{q_lora_rank: "
                  "{}, kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}}",
                  kLatentHidden, kLatentHeads, query_rank),
      strategy, kLatentSequence);
}

std::int64_t weights_of(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) sum += p.local.out * p.local.in;
  return sum;
}

TEST(LatentAttention, WeightsAreTheModelsCutByHeads) {
  for (const std::int64_t query_rank : {0, 24}) {
    for (const int tensor : {1, 2, 4}) {
      const Spec spec = latent_spec(query_rank, fmt::format("tensor: {}, global_batch: 1", tensor));
      std::int64_t expected = 0;
      for (const auto& list : {embedding_parameters(spec.model, 0), layer_parameters(spec.model, 0),
                               layer_parameters(spec.model, 1), head_parameters(spec.model)}) {
        for (const Parameter& p : list) expected += p.out * p.in / (p.partition == Partition::replicated ? 1 : tensor);
      }
      EXPECT_EQ(weights_of(make_plan(spec)), expected) << query_rank << " " << tensor;
    }
  }
}

// Scores over keys of nope + rope columns, values of their own width, half of the square.
TEST(LatentAttention, ValuesAreNarrowerThanKeys) {
  const Plan plan = make_plan(latent_spec(24, "tensor: 2, global_batch: 1"));
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* a = std::get_if<FlashAttention>(&plan.op_of(t).work);
    if (a == nullptr) continue;
    EXPECT_EQ(a->heads, kLatentHeads / 2);
    EXPECT_EQ(a->kv_heads, kLatentHeads / 2);
    const double forward = 2.0 * kLatentHeads / 2 * kLatentSequence * kLatentSequence / 2 * (20 + 10);
    EXPECT_DOUBLE_EQ(cost_of(*a, 2).flops, a->direction == Direction::forward ? forward : 2.5 * forward);
  }
}

// The compressed vectors and the rope keys are gathered over the tensor group, not the hidden states.
TEST(LatentAttention, TensorRanksGatherCompressedVectors) {
  const Plan plan = make_plan(latent_spec(24, "tensor: 2, global_batch: 1, precision: bf16"));
  std::map<std::string, Bytes> gathered;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    const bool forward = plan.op_of(t).phase == Phase::forward;
    if (c != nullptr && forward && c->kind == CollectiveKind::all_gather) gathered[plan.op_of(t).name] = c->bytes;
  }
  EXPECT_EQ(gathered.at("query up gather"), kLatentSequence * 24 * 2);
  EXPECT_EQ(gathered.at("key/value up gather"), kLatentSequence * 20 * 2);
  EXPECT_EQ(gathered.at("rope keys gather"), kLatentSequence * 8 * 2);
  EXPECT_FALSE(gathered.contains("query down gather"));
}

// With mla_up_proj queries, keys and values are computed again from the compressed vectors.
TEST(LatentAttention, ProjectionsUpRunAgain) {
  std::vector<std::string> again;
  const Plan plan = make_plan(latent_spec(24, "global_batch: 1, recompute: [mla_up_proj]"));
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (plan.op_of(t).recompute && plan.frames[plan.tasks[t].frame].layer == 0) again.push_back(plan.op_of(t).name);
  }
  EXPECT_EQ(again, (std::vector<std::string>{"query norm again", "query up again", "key/value norm again",
                                             "key/value up again", "latent heads again"}));
}

TEST(LatentAttention, WhatIsNotBuiltIsRefused) {
  EXPECT_THROW(make_plan(latent_spec(24, "attention: unfused, global_batch: 1")), Error);
}

// Over a context ring keys and values travel expanded, h (dk + dv) elements a token: n - 1 times forward and as often
// back, their gradients n times; gathered twice and scattered once.
TEST(LatentAttention, TravelsExpandedRoundAContextRing) {
  for (const int n : {2, 4}) {
    const std::int64_t block = kLatentSequence / n * kLatentHeads * (20 + 10), layers = 2;
    const Plan ring = make_plan(latent_spec(24, fmt::format("context: {}", n)));
    EXPECT_EQ(test::elements_moved(ring, 0, Dimension::context, CollectiveKind::shift), layers * (3 * n - 2) * block);
    const Plan gather = make_plan(latent_spec(24, fmt::format("context: {}, context_kind: allgather", n)));
    EXPECT_EQ(test::elements_moved(gather, 0, Dimension::context, CollectiveKind::all_gather), layers * 2 * n * block);
    EXPECT_EQ(test::elements_moved(gather, 0, Dimension::context, CollectiveKind::reduce_scatter), layers * n * block);
  }
}

// Queries, keys and values of a rank's positions go out by heads and results come back, as does each one's gradient.
TEST(LatentAttention, ExchangesHeadsOfTheirOwnWidths) {
  for (const int n : {2, 4}) {
    const Plan plan = make_plan(latent_spec(24, fmt::format("context: {}, context_kind: ulysses", n)));
    EXPECT_EQ(test::elements_moved(plan, 0, Dimension::ulysses, CollectiveKind::all_to_all),
              2 * 2 * kLatentSequence / n * kLatentHeads * (20 + 20 + 10 + 10));
  }
}

}  // namespace
}  // namespace orrery
