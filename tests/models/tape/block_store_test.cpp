// The places of activations between forward and backward; tests/models/planner/offload_test.cpp checks their volumes.
#include <algorithm>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

struct Built {
  Block block;
  std::vector<Op> ops;
};

Built layer(const std::string& strategy, bool offload) {
  const Spec spec = spec_of(kSmall, strategy);
  Built b;
  b.block =
      layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, spec.strategy.recompute.any(), b.ops, offload);
  return b;
}

bool frees(const Op& op, std::uint16_t slot) {
  return std::any_of(op.frees.begin(), op.frees.end(),
                     [&](const Operand& o) { return o.scope == Scope::own && o.slot == slot; });
}

bool takes(const Op& op, std::uint16_t slot) {
  return std::any_of(op.allocates.begin(), op.allocates.end(),
                     [&](const Operand& o) { return o.scope == Scope::own && o.slot == slot; });
}

// Every offloaded buffer is freed by the op that waits for the offload and taken again by the copy that prefetches it;
// the host's buffer lives from one copy to the other.
TEST(BlockStore, DeviceMemoryIsFreeBetweenForwardAndBackward) {
  for (const char* strategy : {"recompute: none", "recompute: full", "recompute: selective, attention: unfused"}) {
    const Built b = layer(strategy, true);
    ASSERT_EQ(b.block.release.size(), 1U) << strategy;
    const Op& release = b.ops[b.block.release.front()];
    ASSERT_GT(b.block.fetches, 0U);
    for (std::uint32_t i = 0; i < b.block.fetches; ++i) {
      const Op& up = b.ops[b.block.backward[i]];
      const std::uint16_t host = up.operands[0].slot, device = up.operands[1].slot;
      EXPECT_EQ(b.block.buffers[host].home, MemoryTier::host);
      EXPECT_EQ(up.lane, LaneKind::h2d);
      EXPECT_TRUE(frees(release, device)) << strategy << ": " << b.block.buffers[device].name;
      EXPECT_TRUE(takes(up, device));
      EXPECT_TRUE(frees(up, host));
      const auto last = std::count_if(b.block.backward.begin(), b.block.backward.end(),
                                      [&](std::uint32_t op) { return frees(b.ops[op], device); });
      EXPECT_EQ(last, 1);
    }
  }
}

TEST(BlockStore, NothingLeavesUnlessAsked) {
  const Built b = layer("recompute: none", false);
  EXPECT_EQ(b.block.fetches, 0U);
  EXPECT_TRUE(b.block.release.empty());
  for (const Op& op : b.ops) EXPECT_FALSE(std::holds_alternative<PlaceCopy>(op.work));
}

}  // namespace
}  // namespace orrery
