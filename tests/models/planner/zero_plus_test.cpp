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

// The bytes of all units' weights, each cut over 16 ranks and sent in few bits: by all ranks, or by one place of each
// node.
Bytes sent(const Plan& plan, const NarrowFormat& format, std::int64_t shards) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role != BlockRole::unit) continue;
    sum += shards * narrow_bytes(format, ceil_div(b.buffers[kUnitGradient].bytes / 2, 16));
  }
  return sum;
}

constexpr NarrowFormat kInt8 = {NarrowKind::int8, 4096}, kInt4 = {NarrowKind::int4, 64},
                       kInt8Gradients = {NarrowKind::int8, 64};
constexpr auto kGather = CollectiveKind::all_gather, kExchange = CollectiveKind::all_to_all;

// ZeRO++, table 1: forward's gather in 8 bits, backward's inside the node, gradients in 4 bits; between nodes three
// times the weights become three quarters of them, and scales: 4 bytes for 4,096 weights, and for 64 gradients, the
// model's width. Two nodes of eight ranks.
TEST(ZeroPlus, TrafficIsThatOfItsTable) {
  const Plan whole = narrowed_plan(""), all = narrowed_plan("weights: int8, gradients: int4, secondary_shards: node");
  const Bytes again = 2 * (kNarrowedElements - 256 * 64);  // the embedding's backward reads no weights but gathers them
  EXPECT_EQ(moved(whole, Dimension::data, kGather), 2 * 2 * kNarrowedElements);
  EXPECT_EQ(moved(all, Dimension::data, kGather), sent(all, kInt8, 16));
  EXPECT_NEAR(static_cast<double>(moved(all, Dimension::data, kGather)), 1.002 * kNarrowedElements,
              .001 * kNarrowedElements);
  EXPECT_GE(moved(all, Dimension::data_in_node, kGather), again);
  EXPECT_EQ(moved(all, Dimension::data, CollectiveKind::reduce_scatter), 0);
  EXPECT_EQ(moved(all, Dimension::data_in_node, kExchange), sent(all, kInt4, 16));
  EXPECT_EQ(moved(all, Dimension::data_over_nodes, kExchange), sent(all, kInt4, 2));
  EXPECT_NEAR(static_cast<double>(moved(all, Dimension::data_over_nodes, kExchange)),
              (.5 + 4.0 / 64) * kNarrowedElements / 8, .01 * kNarrowedElements / 8);
}

TEST(ZeroPlus, NarrowsEachTransferByItself) {
  const Plan weights = narrowed_plan("weights: int8"), gradients = narrowed_plan("gradients: int8");
  EXPECT_EQ(moved(weights, Dimension::data, kGather), 2 * sent(weights, kInt8, 16));
  EXPECT_EQ(moved(gradients, Dimension::data_in_node, kExchange), sent(gradients, kInt8Gradients, 16));
  EXPECT_EQ(moved(narrowed_plan("secondary_shards: node"), Dimension::data, kGather), 2 * kNarrowedElements);
}

// Conversions of gradients that are reduced beside backward run beside it too, and no op of backward waits for them.
TEST(ZeroPlus, ConvertsGradientsOnTheLaneOfReductions) {
  const Plan plan = narrowed_plan("gradients: int4");
  int conversions = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    const bool converts = std::holds_alternative<Quantize>(op.work) || std::holds_alternative<Dequantize>(op.work);
    if (converts && op.phase == Phase::backward) {
      EXPECT_EQ(op.lane, LaneKind::data_reduce) << op.name;
      ++conversions;
    }
    if (op.lane != LaneKind::compute || op.phase != Phase::backward) continue;
    for (const TaskId before : plan.dependencies_of(t))
      EXPECT_NE(plan.op_of(before).lane, LaneKind::data_reduce) << op.name;
  }
  EXPECT_EQ(conversions, 3 * 11);  // of eight layers, two tables and the last norm
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
