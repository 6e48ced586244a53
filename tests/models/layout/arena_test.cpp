// ZeRO-R's memory that is allocated once: its size in closed form.
#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

Bytes bytes_of(const Plan& plan, BlockRole role, std::size_t slot, std::uint32_t rank_slot) {
  for (const Frame& f : plan.frames) {
    if (f.slot == rank_slot && plan.blocks[f.block].role == role) return plan.blocks[f.block].buffers[slot].bytes;
  }
  return -1;
}

// MD (1910.02054, section 6.3): 2sbh bytes for each recomputed layer of each micro-batch in flight; 2sbh/t where the
// tensor group shares them (Pa).
TEST(Arena, HoldsTheInputsInFlight) {
  const Bytes input = 32 * 64 * 2;
  const auto arena = [](const std::string& strategy, std::uint32_t slot) {
    const Plan plan =
        make_plan(spec_of(kSmall, "precision: bf16, recompute: full, contiguous_activations: true, " + strategy));
    return bytes_of(plan, BlockRole::arena, 0, slot);
  };
  EXPECT_EQ(arena("global_batch: 3", 0), 8 * input);
  EXPECT_EQ(arena("global_batch: 3, recompute_layers: 5", 0), 5 * input);
  EXPECT_EQ(arena("tensor: 4, sequence_parallel: false, partition_activations: true, global_batch: 2", 0),
            8 * input / 4);
  for (std::uint32_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(arena("pipeline: 4, schedule: 1f1b, global_batch: 8", stage),
              (4 - stage) * 2 * input + (stage > 0 ? input : 0))  // one input is received ahead
        << stage;
  EXPECT_EQ(arena("pipeline: 4, schedule: gpipe, global_batch: 8", 0), 8 * 2 * input);
}

TEST(Arena, IsThereOnlyWhenAsked) {
  const Plan plan = make_plan(spec_of(kSmall, "recompute: full, global_batch: 2"));
  EXPECT_EQ(bytes_of(plan, BlockRole::arena, 0, 0), -1);
  for (const Block& block : plan.blocks) {
    for (const BlockBuffer& slot : block.buffers) EXPECT_FALSE(slot.contiguous);
  }
}

// ZeRO-R's constant-size buffers (CB, section 6.2): a fused buffer is as large as all gradients (12 GB for 3 B
// parameters in fp32), or as one bucket.
TEST(FusedBuffer, IsAsLargeAsABucket) {
  const auto buffer = [](const char* sharding, double bucket) {
    const Spec spec = spec_of(kSmall, fmt::format("data: 4, sharding: {}, global_batch: 4, gradient_precision: fp32, "
                                                  "fused_buffers: true, bucket_MiB: {}",
                                                  sharding, bucket));
    return std::pair(bytes_of(make_plan(spec), BlockRole::rank, kFusedBuffer, 0), local_parameters(spec, 0).front());
  };
  for (const char* sharding : {"none", "zero1"}) {
    const auto [all, weights] = buffer(sharding, 1e6);
    EXPECT_EQ(all, 4 * weights);
    const auto [some, same] = buffer(sharding, 0.1);
    const Bytes largest = 4 * 256 * 64 * 2;  // bytes by which a bucket may be exceeded: the gate and up weights
    EXPECT_GE(some, static_cast<Bytes>(0.1 * 1048576));
    EXPECT_LE(some, static_cast<Bytes>(0.1 * 1048576) + largest);
  }
}

// Every bucket is copied into the fused buffer, reduced there, and this rank's part copied out, in order on one lane.
TEST(FusedBuffer, IsFilledReducedAndEmptied) {
  const Plan plan =
      make_plan(spec_of(kSmall, "data: 4, sharding: zero1, global_batch: 8, fused_buffers: true, bucket_MiB: 0.1"));
  std::vector<std::string> names;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    if (plan.op_of(t).lane == LaneKind::data_reduce) names.push_back(plan.op_of(t).name);
  }
  ASSERT_GT(names.size(), 6U);
  for (std::size_t i = 0; i < names.size(); i += 3) {
    EXPECT_EQ(names[i], "fuse gradients");
    EXPECT_EQ(names[i + 1], "reduce gradients");
    EXPECT_EQ(names[i + 2], "unfuse gradients");
  }
}

}  // namespace
}  // namespace orrery
