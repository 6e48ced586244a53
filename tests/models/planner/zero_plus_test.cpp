#include "models/planner/units.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kNarrowedElements = 8 * (64 * 64 * 4 + 3 * 64 * 256 + 2 * 64) + 2 * 256 * 64 + 64;

Plan narrowed_plan(const std::string& narrow) {
  return make_plan(
      test::spec_of(test::kSmall, "data: 16, global_batch: 16, sharding: zero3, zero_quantize: {" + narrow + "}"));
}

Bytes moved(const Plan& plan, Dimension group, CollectiveKind kind) {
  Bytes sum = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == group && c->kind == kind) sum += c->bytes;
  }
  return sum;
}

constexpr auto kGather = CollectiveKind::all_gather, kExchange = CollectiveKind::all_to_all;

// ZeRO++, table 1: forward's gather in 8 bits, backward's inside the node, gradients in 4 bits; between nodes three
// times the weights become three quarters of them. Two nodes of eight ranks.
TEST(ZeroPlus, TrafficIsThatOfItsTable) {
  const Plan whole = narrowed_plan(""), all = narrowed_plan("weights: int8, gradients: int4, secondary_shards: node");
  const Bytes again = 2 * (kNarrowedElements - 256 * 64);  // the embedding's backward reads no weights but gathers them
  EXPECT_EQ(moved(whole, Dimension::data, kGather), 2 * 2 * kNarrowedElements);
  EXPECT_EQ(moved(all, Dimension::data, kGather), kNarrowedElements);
  EXPECT_GE(moved(all, Dimension::data_in_node, kGather), again);
  EXPECT_EQ(moved(all, Dimension::data, CollectiveKind::reduce_scatter), 0);
  EXPECT_EQ(moved(all, Dimension::data_in_node, kExchange), kNarrowedElements / 2);
  EXPECT_NEAR(static_cast<double>(moved(all, Dimension::data_over_nodes, kExchange)), kNarrowedElements / 16.0, 16);
}

TEST(ZeroPlus, NarrowsEachTransferByItself) {
  EXPECT_EQ(moved(narrowed_plan("weights: int8"), Dimension::data, kGather), 2 * kNarrowedElements);
  EXPECT_EQ(moved(narrowed_plan("gradients: int8"), Dimension::data_in_node, kExchange), kNarrowedElements);
  EXPECT_EQ(moved(narrowed_plan("secondary_shards: node"), Dimension::data, kGather), 2 * kNarrowedElements);
}

// A node holds all weights once more.
TEST(ZeroPlus, SecondaryShardsTakeANodesPart) {
  const Plan plan = narrowed_plan("secondary_shards: node");
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role == BlockRole::state) {
      EXPECT_EQ(b.buffers[kSecondaryShard].bytes, 2 * ((kNarrowedElements + 7) / 8));
    }
  }
}

}  // namespace
}  // namespace orrery
