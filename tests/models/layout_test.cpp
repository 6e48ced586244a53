// Which blocks a stage has, and how its gradients fall into buckets.
#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

// Layers of one stage whose block recomputes, by layer; each layer once.
std::map<std::int32_t, bool> recomputed(const Plan& plan, std::uint32_t slot) {
  std::map<std::int32_t, bool> result;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.slot == slot && block.role == BlockRole::layer) result[f.layer] = block.name == "layer, recomputed";
  }
  return result;
}

// recompute_layers counts over all chunks of a stage, from its first layer.
TEST(Layout, RecomputesTheFirstLayersOfAStage) {
  for (const int layers : {0, 1, 3, 4, 8}) {
    const Plan plan = make_plan(test::spec_of(
        test::kSmall,
        fmt::format("pipeline: 2, virtual_stages: 2, global_batch: 4, recompute: full, recompute_layers: {}", layers)));
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      int index = 0;
      const auto stage = recomputed(plan, slot);
      EXPECT_EQ(stage.size(), 4U);
      for (const auto& [layer, again] : stage) EXPECT_EQ(again, index++ < layers) << slot << " " << layer;
    }
  }
}

TEST(Layout, UnevenStages) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 3, stage_layers: [0, 7, 1], global_batch: 3"));
  EXPECT_EQ(recomputed(plan, 0).size(), 0U);
  EXPECT_EQ(recomputed(plan, 1).size(), 7U);
  EXPECT_EQ(recomputed(plan, 2).size(), 1U);
}

// Buckets cover the flat gradient buffer once, from its end to its start, and hold at least what the limit says but for
// the last.
TEST(Layout, BucketsCoverTheGradients) {
  for (const double limit : {0.0, 0.05, 0.3, 25.0}) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, fmt::format("data: 2, bucket_MiB: {}", limit)));
    const std::int64_t all = parameter_count(test::spec_of(test::kSmall, "").model);
    std::int64_t end = all;
    int buckets = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (c == nullptr || c->group != Dimension::data) continue;
      EXPECT_EQ(c->first + c->bytes / c->width, end);
      end = c->first;
      if (end > 0) {
        EXPECT_GE(static_cast<double>(c->bytes), limit * 1048576);
      }
      ++buckets;
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(buckets == 1, limit == 0 || limit == 25);
  }
}

// With eight-bit parameters a rank holds a layer's matrices and their transposes in one byte each, and no wider copy.
TEST(Layout, EightBitMatricesAlone) {
  const auto bytes = [](const char* software) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, "precision: fp8", 32, software));
    std::map<std::string, Bytes> result;
    for (const Block& block : plan.blocks) {
      if (block.role != BlockRole::state) continue;
      for (const Slot& s : block.slots) result[s.name] += s.bytes;
    }
    return result;
  };
  auto both = bytes("profile: megatron-core, gathers_eight_bit: false");
  auto alone = bytes("profile: megatron-core, gathers_eight_bit: true");
  EXPECT_EQ(both["fp8 weights"], alone["fp8 weights"]);
  EXPECT_EQ(both["parameters"] - alone["parameters"], alone["fp8 weights"]);  // two bytes each way
  EXPECT_GT(alone["parameters"], 0);
}

}  // namespace
}  // namespace orrery
