// Plans of attention to compressed keys: weights, work by closed forms, what trains.
#include "models/layers/compressed_attention.h"

#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kPooledTokens = 64, kSharedWindow = 8, kChosenKeys = 6, kHeavyRate = 16;

Spec compressed_spec(const std::string& kinds, const std::string& strategy, const std::string& more = "") {
  return test::spec_of(fmt::format("name: compressed, layers: 3, hidden: 48, heads: 8, kv_heads: 1, head_dim: 16, "
                                   "vocab: 256, feed_forward: 64, attention_sinks: true, layer_kinds: {}, "
                                   "compressed_attention: {{q_lora_rank: 24, rope_head_dim: 4, window: {}, "
                                   "heavy_rate: {}, output_groups: 4, output_rank: 12}}{}",
                                   kinds, kSharedWindow, kHeavyRate, more),
                       strategy, kPooledTokens);
}

Spec all_compressed(const std::string& strategy) {
  return compressed_spec("[windowed, compressed_sparse, heavily_compressed]", strategy,
                         fmt::format(", indexer: {{heads: 4, head_dim: 8, top_k: {}}}", kChosenKeys));
}

template <class W>
std::vector<std::pair<std::int32_t, W>> attention_works(const Plan& plan) {
  std::vector<std::pair<std::int32_t, W>> found;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (const auto* w = std::get_if<W>(&plan.op_of(t).work))
      found.emplace_back(plan.frames[plan.tasks[t].frame].layer, *w);
  }
  return found;
}

TEST(CompressedAttention, WeightsAreTheModelsCutByHeadsAndGroups) {
  for (const int tensor : {1, 2, 4}) {
    const Spec spec = all_compressed(fmt::format("tensor: {}, global_batch: 1", tensor));
    const Plan plan = make_plan(spec);
    std::int64_t expected = 0, planned = 0;
    for (const auto& list :
         {embedding_parameters(spec.model, 0), layer_parameters(spec.model, 0), layer_parameters(spec.model, 1),
          layer_parameters(spec.model, 2), head_parameters(spec.model)}) {
      for (const Parameter& p : list) expected += p.out * p.in / (p.partition == Partition::replicated ? 1 : tensor);
    }
    for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) planned += p.local.out * p.local.in;
    EXPECT_EQ(planned, expected) << tensor;
  }
}

// Every pair that a query of a kind sees costs two products of head_dim columns; the keys have one head. The window's
// pairs are those of the layers without compressed keys, which are counted as if tokens were continuous.
TEST(CompressedAttention, AttentionIsOfTheWindowAndTheCompressedKeys) {
  const Plan plan = make_plan(all_compressed("tensor: 2, global_batch: 1"));
  double window = 0, sparse = 0, heavy = 0;
  for (std::int64_t t = 1; t <= kPooledTokens; ++t) {
    window += static_cast<double>(std::min(t, kSharedWindow));
    sparse += static_cast<double>(std::min(t / 4, kChosenKeys));
    heavy += static_cast<double>(t / kHeavyRate);
  }
  const double continuous =
      static_cast<double>(kPooledTokens * kSharedWindow) - static_cast<double>(kSharedWindow * kSharedWindow) / 2;
  const double pairs[] = {continuous, window + sparse, window + heavy};
  const auto attentions = attention_works<FlashAttention>(plan);
  ASSERT_EQ(attentions.size(), 6U);
  for (const auto& [layer, a] : attentions) {
    EXPECT_EQ(a.kv_heads, 1);
    EXPECT_EQ(a.heads, 4);
    const double forward = 2 * 4 * pairs[layer] * (16 + 16);
    EXPECT_DOUBLE_EQ(cost_of(a, 2).flops, a.direction == Direction::forward ? forward : 2.5 * forward) << layer;
  }
}

// Sparse keys are sums over two runs of 4 tokens, of which contents and gates have twice the columns; the index has
// such keys of its own, of 8 columns, and scores all of them that lie before a token.
TEST(CompressedAttention, KeysAreSumsOfRunsOfTokens) {
  const Plan plan = make_plan(all_compressed("global_batch: 1"));
  std::map<std::pair<std::int32_t, std::int64_t>, int> pools;
  for (const auto& [layer, p] : attention_works<Pool>(plan)) {
    ++pools[{layer, p.columns}];
    EXPECT_EQ(p.overlaps, layer == 1);
    EXPECT_EQ(p.keys(), kPooledTokens / (layer == 1 ? 4 : kHeavyRate));
    const double read = static_cast<double>(kPooledTokens * p.columns * (layer == 1 ? 2 : 1));
    EXPECT_DOUBLE_EQ(cost_of(p, 2).flops, (p.direction == Direction::forward ? 7 : 14) * read);
  }
  EXPECT_EQ(pools, (std::map<std::pair<std::int32_t, std::int64_t>, int>{{{1, 16}, 2}, {{1, 8}, 2}, {{2, 16}, 2}}));
  for (const auto& [layer, i] : attention_works<IndexScores>(plan)) {
    EXPECT_EQ(layer, 1);
    EXPECT_EQ(i.key, kPooledTokens / 4);
    EXPECT_EQ(i.top_k, kChosenKeys);
  }
}

// The index is trained by its own loss: the layer's input gets no gradient from it, but from attention's keys.
TEST(CompressedAttention, TheIndexHasNoInputGradient) {
  std::set<std::string> names;
  const Plan plan = make_plan(all_compressed("global_batch: 1"));
  for (TaskId t = 0; t < plan.task_count(); ++t) names.insert(plan.op_of(t).name);
  for (const char* without : {"index keys contents", "index keys gates", "index weights", "index queries"}) {
    EXPECT_TRUE(names.contains(std::string(without) + " weight gradient")) << without;
    EXPECT_FALSE(names.contains(std::string(without) + " input gradient")) << without;
  }
  EXPECT_TRUE(names.contains("compressed keys contents input gradient"));
  EXPECT_TRUE(names.contains("attention output groups weight gradient"));
}

TEST(CompressedAttention, RefusesWhatDoesNotFit) {
  const auto refusal = [](auto make) {
    try {
      make();
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const auto says = [&](auto make, const char* what) {
    EXPECT_NE(refusal(make).find(what), std::string::npos) << refusal(make);
  };
  says([] { all_compressed("tensor: 8, global_batch: 1"); },
       "tensor: 8 does not divide compressed_attention.output_groups");
  says([] { compressed_spec("[compressed_sparse]", "global_batch: 1"); }, "layers of kind compressed_sparse need it");
  says([] { compressed_spec("[windowed, attention]", "global_batch: 1"); }, "attention beside compressed_attention");
  says([] { make_plan(compressed_spec("[windowed]", "global_batch: 1", ", qk_norm: true")); },
       "they do not apply to it");
  says([] { make_plan(all_compressed("global_batch: 1, context: 2")); },
       "a compressed key may be of tokens on two ranks");
}

}  // namespace
}  // namespace orrery
