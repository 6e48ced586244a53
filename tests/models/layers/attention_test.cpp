// The attention heads of one tensor rank.
#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

std::vector<Op> layer_ops(const Spec& spec) {
  std::vector<Op> ops;
  layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, spec.strategy.recompute.any(), ops);
  return ops;
}

std::string with_heads(int kv) {
  return fmt::format(
      "name: m, layers: 2, hidden: 64, heads: 16, kv_heads: {}, head_dim: 8, feed_forward: 64, vocab: 64", kv);
}

// nanotron copies the packed projection of queries, keys and values, then the keys and values: the queries stay in the
// packed copy until the backward pass of attention has read it.
TEST(Attention, QueriesStayBesideKeysThatWereCopied) {
  for (const int copies : {0, 1, 3}) {
    const Plan plan = make_plan(
        test::spec_of(with_heads(4), "tensor: 2", 32, fmt::format("profile: orrery, attention_copies: {}", copies)));
    Bytes beside = 0;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers)
        beside += slot.name == "keys and values beside queries" ? slot.bytes : 0;
    }
    EXPECT_EQ(beside, copies > 1 ? 32 * 2 * 2 * 8 * 2 : 0) << copies;
    bool read = false, freed = false;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const Op& op = plan.op_of(t);
      if (op.phase != Phase::backward) continue;
      read = read || std::holds_alternative<FlashAttention>(op.work);
      for (const Operand& o : op.frees) {
        const Frame& frame = plan.frames[frame_of(plan, plan.tasks[t].frame, o)];
        if (plan.blocks[frame.block].buffers[o.slot].name != "keys and values beside queries") continue;
        EXPECT_TRUE(read);
        freed = true;
      }
    }
    EXPECT_EQ(freed, copies > 1) << copies;
  }
}

// Query heads are divided over the tensor-parallel ranks; key/value heads too, but each rank has at least one.
TEST(Attention, HeadsAreCut) {
  for (const int kv : {1, 2, 4, 16}) {
    for (const int t : {1, 2, 4, 8, 16}) {
      const auto ops = layer_ops(test::spec_of(with_heads(kv), fmt::format("tensor: {}, micro_batch: 3", t)));
      const int pairs = std::max(1, kv / t);
      for (const Op& op : ops) {
        if (const auto* a = std::get_if<FlashAttention>(&op.work)) {
          EXPECT_EQ(a->heads, 16 / t);
          EXPECT_EQ(a->kv_heads, pairs);
          EXPECT_EQ(a->batch, 3);
          EXPECT_EQ(a->query, 32);
        }
        const auto* g = std::get_if<Gemm>(&op.work);
        if (g != nullptr && op.name == "qkv") {
          EXPECT_EQ(g->n, (16 / t + 2 * pairs) * 8);
        }
        if (g != nullptr && op.name == "attention output") {
          EXPECT_EQ(g->k, 16 / t * 8);
        }
      }
    }
  }
}

// Selective recomputation runs only the core of attention again, with flash attention or without.
TEST(Attention, SelectiveRunsTheCoreAgain) {
  for (const char* attention : {"flash", "unfused"}) {
    const auto ops = layer_ops(test::spec_of(with_heads(16) + ", dropout: 0.1",
                                             fmt::format("recompute: selective, attention: {}", attention)));
    std::vector<std::string> again;
    for (const Op& op : ops)
      if (op.recompute) again.push_back(op.name);
    const std::vector<std::string> flash = {"attention again"};
    const std::vector<std::string> unfused = {"scores again", "softmax again", "attention dropout again",
                                              "values again"};
    EXPECT_EQ(again, std::string(attention) == "flash" ? flash : unfused);
  }
}

// Attention in 8 bits casts its operands, and in backward the gradient of its result, along rows and columns.
TEST(Attention, CastsItsOperandsTo8Bits) {
  for (const bool eight_bit : {false, true}) {
    const auto ops =
        layer_ops(test::spec_of(with_heads(4), "precision: fp8, micro_batch: 2", 32,
                                eight_bit ? "profile: orrery, eight_bit_attention: always" : "profile: orrery"));
    std::vector<double> bytes;
    for (const Op& op : ops) {
      if (op.name == "attention operands to 8 bits" || op.name == "attention output gradient to 8 bits")
        bytes.push_back(cost_of(op.work, 2).bytes);
    }
    const double rows = 2 * 32 * 8 * (2 + 1 + 1);
    EXPECT_EQ(bytes, (eight_bit ? std::vector{rows * (16 + 2 * 4), rows * 16} : std::vector<double>{}));
  }
}

// A sliding window is used in every layer except each `every`th.
TEST(Attention, WindowsAlternate) {
  const Spec spec = test::spec_of(
      "name: m, layers: 6, hidden: 64, heads: 8, feed_forward: 64, vocab: 64, sliding_window: {window: 16, every: 3}",
      "");
  const Plan plan = make_plan(spec);
  std::vector<std::int64_t> windows;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* a = std::get_if<FlashAttention>(&plan.op_of(t).work);
    if (a != nullptr && a->direction == Direction::forward) windows.push_back(a->window);
  }
  EXPECT_EQ(windows, (std::vector<std::int64_t>{16, 16, 0, 16, 16, 0}));
}

}  // namespace
}  // namespace orrery
