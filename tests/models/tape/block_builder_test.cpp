// Blocks: backward derived from forward, recomputed regions, lifetimes derived from uses.
#include "models/tape/block_builder.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

using Builder = BlockBuilder;

Builder builder() { return {"block", BlockRole::layer, Precision::bf16, Scope::state, 0, Scope::state, 2}; }

// x -> a -> b, each with a backward that reads its own output; a and b may lie in one region.
Block two_ops(bool region, std::vector<Op>& ops) {
  Builder t = builder();
  const auto x = t.input(8);
  t.output_gradient(8);
  const auto a = t.slot("a", 8), b = t.slot("b", 8);
  t.begin_region(region);
  t.emit("a", Add{4}, {.reads = {x}, .writes = {a}});
  t.on_backward([&t, x, a] {
    const auto dx = t.slot("dx", 8);
    t.emit("a gradient", Add{4}, {.reads = {a, t.gradient(a)}, .writes = {dx}});
    t.contribute(x, dx);
  });
  t.emit("b", Add{4}, {.reads = {a}, .writes = {b}});
  t.end_region();
  t.on_backward([&t, a, b] {
    const auto da = t.slot("da", 8);
    t.emit("b gradient", Add{4}, {.reads = {b, t.gradient(b)}, .writes = {da}});
    t.contribute(a, da);
  });
  const auto out = t.slot("out", 8);
  t.emit("out", Add{4}, {.reads = {b}, .writes = {out}});
  t.on_backward([&t, b, out] { t.contribute(b, t.gradient(out)); });
  return t.finish(out, ops);
}

std::vector<std::string> names(const std::vector<Op>& ops, const std::vector<std::uint32_t>& ids) {
  std::vector<std::string> result;
  for (const std::uint32_t id : ids) result.push_back(ops[id].name);
  return result;
}

using Names = std::vector<std::string>;

TEST(BlockBuilder, BackwardRunsFromTheLast) {
  std::vector<Op> ops;
  const Block block = two_ops(false, ops);
  EXPECT_EQ(names(ops, block.forward), (Names{"a", "b", "out"}));
  EXPECT_EQ(names(ops, block.backward), (Names{"b gradient", "a gradient"}));
}

// A region of recomputed ops runs again, whole and once, before the first op that needs an output that was not kept.
TEST(BlockBuilder, RegionsRunAgain) {
  std::vector<Op> ops;
  const Block block = two_ops(true, ops);
  EXPECT_EQ(names(ops, block.forward), (Names{"a", "b", "out"}));
  EXPECT_EQ(names(ops, block.backward), (Names{"a again", "b again", "b gradient", "a gradient"}));
  for (const std::uint32_t id : block.backward)
    EXPECT_EQ(ops[id].recompute, ops[id].name.find("again") != std::string::npos);
}

// Recomputation waits for the gradient with which the backward pass of the region begins, though it does not read that
// gradient.
TEST(BlockBuilder, RegionsWaitForTheirGradient) {
  std::vector<Op> ops;
  const Block block = two_ops(true, ops);
  const Op& first = ops[block.backward.front()];
  ASSERT_EQ(first.waits_for.size(), 1U);
  EXPECT_EQ(first.waits_for.front().scope, Scope::own);
  EXPECT_EQ(first.waits_for.front().slot, kOutputGradient);
  EXPECT_TRUE(ops[block.backward[1]].waits_for.empty());
}

Names freed(const Block& block, const Op& op) {
  Names result;
  for (const Operand& o : op.frees) {
    if (o.scope == Scope::own) result.push_back(block.buffers[o.slot].name);
  }
  return result;
}

// A kept activation is freed after its last use in the backward pass, others after their last use in either pass.
TEST(BlockBuilder, LifetimesFollowUses) {
  std::vector<Op> kept_ops, again_ops;
  const Block kept = two_ops(false, kept_ops), again = two_ops(true, again_ops);
  EXPECT_EQ(freed(kept, kept_ops[kept.forward[1]]), Names{});
  EXPECT_EQ(freed(kept, kept_ops[kept.forward[2]]), Names{});
  EXPECT_EQ(freed(kept, kept_ops[kept.backward[0]]), (Names{"output gradient", "b"}));
  EXPECT_EQ(freed(again, again_ops[again.forward[1]]), (Names{"a"}));
  EXPECT_EQ(freed(again, again_ops[again.forward[2]]), (Names{"b"}));
  EXPECT_EQ(freed(again, again_ops[again.backward[0]]), (Names{"input"}));
}

// Several gradients of one value are added up.
TEST(BlockBuilder, GradientsAddUp) {
  std::vector<Op> ops;
  Builder t = builder();
  const auto x = t.input(8);
  t.output_gradient(8);
  const auto y = t.slot("y", 8);
  t.emit("y", Add{4}, {.reads = {x}, .writes = {y}});
  t.on_backward([&] {
    for (int i = 0; i < 3; ++i) {
      const auto dx = t.slot("dx", 8);
      t.emit("dx", Add{4}, {.reads = {t.gradient(y)}, .writes = {dx}});
      t.contribute(x, dx);
    }
  });
  const Block block = t.finish(y, ops);
  EXPECT_EQ(names(ops, block.backward), (Names{"dx", "dx", "gradient sum", "dx", "gradient sum"}));
  EXPECT_EQ(ops[block.backward.back()].operands.back().scope, Scope::previous);
}

}  // namespace
}  // namespace orrery
