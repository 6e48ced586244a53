// The blocks of the vision encoder: their weights over tensor ranks, their places before the embedding, rows of images
// in it, and what a frozen encoder leaves out.
#include "models/layers/vision.h"

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "models/spec/vision.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

std::int64_t weights_of_all(const Plan& plan) {
  std::int64_t sum = 0;
  for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
    for (const std::uint32_t state : states_of(plan, slot)) {
      for (const bool frozen : {false, true}) {
        for (const PlacedParameter& p : parameters_of(plan, state, frozen)) sum += p.local.out * p.local.in;
      }
    }
  }
  return sum;
}

std::int64_t all_parameters(const Spec& spec) {
  return parameter_count(spec.model, spec.sequence) + vision_parameter_count(spec.model);
}

TEST(VisionBlocks, WeightsAreTheModels) {
  for (const char* more : {"", "frozen: [vision]", "frozen: [vision, projector, embedding]", "lora: {rank: 4}"}) {
    const Spec spec = test::seeing("global_batch: 1", more);
    EXPECT_EQ(weights_of_all(make_plan(spec)), all_parameters(spec)) << more;
  }
  const Spec bare = test::seeing("global_batch: 1", "", "gated: true, norm: rmsnorm, patch_bias: false, projectors: 2");
  EXPECT_EQ(weights_of_all(make_plan(bare)), all_parameters(bare));
}

// Each of two tensor ranks holds half of what is cut: heads, MLPs, and the columns between a projector's products.
TEST(VisionBlocks, TensorRanksCutHeadsAndMlps) {
  for (const char* sequence : {"true", "false"}) {
    const Spec spec = test::seeing(fmt::format("tensor: 2, sequence_parallel: {}, global_batch: 1", sequence));
    std::int64_t whole = 0, cut = 0;
    for (const Parameter& p : vision_parameters(spec.model))
      (p.partition == Partition::replicated ? whole : cut) += elements(p);
    std::int64_t planned = 0;
    const Plan plan = make_plan(spec);
    for (const Frame& f : plan.frames) {
      if (f.micro_batch == 0 && plan.blocks[f.block].role == BlockRole::vision)
        planned += plan.blocks[f.block].parameter_elements;
    }
    EXPECT_EQ(planned, whole + cut / 2) << sequence;
  }
}

TEST(VisionBlocks, StandBeforeTheEmbeddingOfTheFirstStage) {
  const Plan plan = make_plan(test::seeing("pipeline: 2, stage_layers: [0, 8], global_batch: 2"));
  std::vector<BlockRole> roles;
  for (const Frame& f : plan.frames) {
    const BlockRole role = plan.blocks[f.block].role;
    if (f.slot == 0 && f.micro_batch == 0 && role != BlockRole::state && role != BlockRole::rank) roles.push_back(role);
  }
  const BlockRole v = BlockRole::vision;
  EXPECT_EQ(roles, (std::vector{v, v, v, v, BlockRole::embedding, BlockRole::send}));
  for (const Frame& f : plan.frames) EXPECT_FALSE(f.slot == 1 && plan.blocks[f.block].role == v);
}

// A tied output reads the embedding's table, which is not the first weight of its chunk: the patches are.
TEST(VisionBlocks, StandBeforeATableThatTheOutputShares) {
  for (const char* sharding : {"none", "zero1", "zero3", "fsdp"}) {
    const Spec spec =
        test::seeing(fmt::format("sharding: {}, data: 2, global_batch: 2", sharding), "tied_embeddings: true");
    const Plan plan = make_plan(spec);
    EXPECT_EQ(weights_of_all(plan), all_parameters(spec)) << sharding;
    const Frame *table = nullptr, *output = nullptr;
    for (const Frame& f : plan.frames) {
      if (plan.blocks[f.block].role == BlockRole::embedding) table = &f;
      if (plan.blocks[f.block].role == BlockRole::output) output = &f;
    }
    ASSERT_TRUE(table != nullptr && output != nullptr);
    EXPECT_GT(table->base, 0) << sharding;
    EXPECT_EQ(output->base, table->base) << sharding;
    EXPECT_EQ(output->unit, table->unit) << sharding;
  }
}

Bytes copied_images(const Plan& plan, const std::string& name) {
  Bytes elements = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* cast = std::get_if<Cast>(&plan.op_of(t).work);
    if (cast != nullptr && plan.op_of(t).name == name) elements += cast->elements;
  }
  return elements;
}

TEST(VisionBlocks, ImagesTakeTheRowsOfTheirTokens) {
  const Plan plan = make_plan(test::seeing("global_batch: 3"));
  EXPECT_EQ(copied_images(plan, "image tokens"), 3 * 8 * 64);
  EXPECT_EQ(copied_images(plan, "image tokens gradient"), 3 * 8 * 64);
  const Plan frozen = make_plan(test::seeing("global_batch: 3", "frozen: [vision, projector]"));
  EXPECT_EQ(copied_images(frozen, "image tokens"), 3 * 8 * 64);
  EXPECT_EQ(copied_images(frozen, "image tokens gradient"), 0);
}

// Under sequence parallelism the embeddings are summed whole, images are placed, and each rank keeps its rows.
TEST(VisionBlocks, RanksKeepTheirRowsAfterImagesArePlaced) {
  const Plan plan = make_plan(test::seeing("tensor: 2, sequence_parallel: true, global_batch: 1"));
  Bytes reduced = 0, gathered = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr || plan.classes[plan.slot_of(t)].representative != 0) continue;
    if (plan.op_of(t).name == "embedding reduce") reduced += c->bytes;
    if (plan.op_of(t).name == "embeddings gradient gather") gathered += c->bytes;
  }
  EXPECT_EQ(reduced, 32 * 64 * 2);
  EXPECT_EQ(gathered, 32 * 64 * 2);
}

TEST(VisionBlocks, RunAgainWithFullRecomputation) {
  const auto again = [](const char* strategy) {
    const Plan plan = make_plan(test::seeing(strategy));
    std::int64_t count = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      count += plan.op_of(t).recompute && plan.blocks[plan.frames[plan.tasks[t].frame].block].role == BlockRole::vision;
    }
    return count;
  };
  EXPECT_GT(again("recompute: full, global_batch: 1"), 0);
  EXPECT_EQ(again("recompute: none, global_batch: 1"), 0);
}

}  // namespace
}  // namespace orrery
