// The plan of context parallelism: the work of each rank, the transfers round the group, and the memory.
#include <numeric>

#include <gtest/gtest.h>

#include "models/plan/check.h"
#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::elements_moved;
using test::kSmall;
using test::spec_of;

constexpr std::int64_t kSequence = 96, kHidden = 64, kHeadDim = 8;

std::string model(int kv) {
  return fmt::format("name: m, layers: 2, hidden: 64, heads: 8, kv_heads: {}, head_dim: 8, feed_forward: 64, vocab: 64",
                     kv);
}

Spec context_spec(int kv, const std::string& strategy) { return spec_of(model(kv), strategy, kSequence); }

const std::vector<std::string> kLayouts = {
    "context: 2",
    "context: 4",
    "context: 2, context_order: contiguous",
    "context: 4, context_order: contiguous",
    "context: 2, context_kind: allgather",
    "context: 4, context_kind: allgather, context_order: contiguous",
    "context: 4, context_kind: ulysses",
    "context: 8, context_kind: ulysses",
    "context: 4, context_kind: {ring: 2, ulysses: 2}",
    "context: 4, context_kind: {ring: 2, ulysses: 2}, context_order: contiguous",
    "context: 2, tensor: 2, pipeline: 2, data: 2, global_batch: 4, sharding: zero1",
    "context: 2, context_order: contiguous, tensor: 2, pipeline: 2, data: 2, global_batch: 4, sharding: zero1",
    "context: 4, context_order: contiguous, data: 2, global_batch: 2, sharding: hsdp, shard_group: 2",
    "context: 2, recompute: selective",
    "context: 4, recompute: full",
};

// Ranks with the same work are one class: with a zigzag layout all ranks of a stage, otherwise those of each block of
// the ring.
TEST(ContextAttention, ClassesAreThoseThatDiffer) {
  for (const std::string& layout : kLayouts) {
    const Spec spec = context_spec(2, layout);
    const Plan plan = make_plan(spec);
    const bool differ = !spec.strategy.context_zigzag;
    EXPECT_EQ(static_cast<std::int64_t>(plan.classes.size()),
              spec.strategy.pipeline * (differ ? spec.strategy.context_ring : 1))
        << layout;
    std::int64_t ranks = 0;
    for (const RankClass& s : plan.classes) ranks += s.multiplicity;
    EXPECT_EQ(ranks, plan.ranks);
    const Plan all = unfold(plan);
    check_plan(all);
    EXPECT_EQ(static_cast<std::int64_t>(all.classes.size()), plan.ranks);
  }
}

// In every layout, all ranks together compute the (query, key) pairs of the whole sequence in every layer, forward and
// backward.
TEST(ContextAttention, EveryPairIsSeenOnce) {
  for (const char* window : {"", ", sliding_window: {window: 20, every: 2}"}) {
    for (const std::string& layout : kLayouts) {
      const Spec spec = spec_of(model(2) + window, layout, kSequence);
      const Plan plan = make_plan(spec);
      double forward = 0, backward = 0;
      for (TaskId t = 0; t < plan.task_count(); ++t) {
        const auto* a = std::get_if<FlashAttention>(&plan.op_of(t).work);
        if (a == nullptr || plan.op_of(t).recompute) continue;
        const double pairs =
            static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity * a->batch * a->heads * a->query) *
            keys_per_query(*a);
        (a->direction == Direction::forward ? forward : backward) += pairs;
      }
      const double all = 96.0 * 96 / 2, windowed = 96 * 20 - 20.0 * 20 / 2;
      const double layers = std::string(window).empty() ? 2 * all : all + windowed;
      const double heads = 8.0 * static_cast<double>(spec.strategy.global_batch);
      EXPECT_NEAR(forward, layers * heads, 1e-6 * forward) << layout;
      EXPECT_NEAR(backward, layers * heads, 1e-6 * forward) << layout;
    }
  }
}

// A ring of n passes a block's keys and values on n - 1 times forward and as often backward, and their gradients n
// times; gathers move (n - 1) / n of all twice, and a scatter once. Ulysses moves queries, keys, values and results
// once each way (2309.14509, section 3.2). Of elements that a rank holds of one layer:
TEST(ContextAttention, VolumesAreTheClosedForms) {
  for (const int kv : {1, 2, 8}) {
    for (const int n : {2, 4}) {
      const std::int64_t block = kSequence / n * 2 * kv * kHeadDim, layers = 2;
      const Plan ring = make_plan(context_spec(kv, fmt::format("context: {}", n)));
      EXPECT_EQ(elements_moved(ring, 0, Dimension::context, CollectiveKind::shift), layers * (3 * n - 2) * block);
      const Plan gather = make_plan(context_spec(kv, fmt::format("context: {}, context_kind: allgather", n)));
      EXPECT_EQ(elements_moved(gather, 0, Dimension::context, CollectiveKind::all_gather), layers * 2 * n * block);
      EXPECT_EQ(elements_moved(gather, 0, Dimension::context, CollectiveKind::reduce_scatter), layers * n * block);
      const Plan heads = make_plan(context_spec(kv, fmt::format("context: {}, context_kind: ulysses", n)));
      const std::int64_t of_kv = 2 * std::max(kv, n) * kHeadDim;  // a head that several ranks need goes to each of them
      EXPECT_EQ(elements_moved(heads, 0, Dimension::ulysses, CollectiveKind::all_to_all),
                layers * 2 * kSequence / n * (2 * kHidden + of_kv));
    }
  }
}

// Unfused attention sees the whole sequence, with some of the heads, after the exchange.
TEST(ContextAttention, UnfusedAttentionWorksOnExchangedHeads) {
  for (const int n : {2, 4}) {
    const Plan plan = make_plan(
        context_spec(8, fmt::format("precision: bf16, context: {}, context_kind: ulysses, attention: unfused", n)));
    for (const Op& op : plan.ops) {
      const auto* g = std::get_if<Gemm>(&op.work);
      if (g == nullptr || g->role != Gemm::Role::scores) continue;
      EXPECT_EQ(g->m, kSequence);
      EXPECT_EQ(g->n, kSequence);
      EXPECT_EQ(g->batch, 8 / n);
    }
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers) {
        if (slot.name != "probabilities") continue;
        EXPECT_EQ(slot.bytes, 8 / n * kSequence * kSequence * 2);
      }
    }
  }
}

// Transfers of keys and values run beside the attention of the previous ones: no attention waits for a transfer issued
// with it.
TEST(ContextAttention, TransfersRunUnderAttention) {
  const Plan plan = make_plan(context_spec(2, "context: 4"));
  TaskId last_transfer = kNone;
  int waits = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane == LaneKind::context && op.name == "keys and values to the next") last_transfer = t;
    if (!std::holds_alternative<FlashAttention>(op.work) || op.phase != Phase::forward) continue;
    for (const TaskId d : plan.dependencies_of(t)) {
      const bool newest = d == last_transfer && std::get<FlashAttention>(op.work).hops < 3;
      EXPECT_FALSE(newest) << describe_task(plan, t);
      waits += plan.op_of(d).lane == LaneKind::context ? 1 : 0;
    }
  }
  EXPECT_EQ(waits, 2 * 3);
}

TEST(ContextAttention, BrokenLayoutsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"context: 32", "context: zigzag order cuts the sequence: 96 in 64 parts; choose context_order: contiguous"},
      {"context: 3, context_kind: ulysses", "does not divide heads / tensor: 8"},
      {"context: 4, context_kind: {ring: 2, ulysses: 4}", "context: 4 is not ring * ulysses = 2 * 4"},
      {"context: 2, attention: unfused", "strategy.attention: unfused attention with a context ring"},
      {"context: 2, context_kind: ulysses, attention: unfused, micro_batch: 2, global_batch: 2", "micro_batch: 1"},
  };
  for (const auto& [strategy, part] : cases) {
    try {
      make_plan(context_spec(8, strategy));
      ADD_FAILURE() << strategy;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
