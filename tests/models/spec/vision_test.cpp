// Vision encoders: parameters as published, tokens, and the products of a step counted a second time from the plan.
#include "models/spec/vision.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layout/placement.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

TEST(Vision, TokensAreSquaresOfPatches) {
  EXPECT_EQ(image_tokens(test::seeing("global_batch: 1")), 2 * 16 / 4);
  EXPECT_EQ(image_tokens(test::spec_of(test::kSmall, "global_batch: 1")), 0);
}

TEST(Vision, AFrozenEncoderLeavesItsProjectorsToTrain) {
  EXPECT_TRUE(vision_trains(test::seeing("global_batch: 1").model));
  EXPECT_TRUE(vision_trains(test::seeing("global_batch: 1", "frozen: [vision]").model));
  EXPECT_FALSE(vision_trains(test::seeing("global_batch: 1", "frozen: [vision, projector]").model));
  EXPECT_FALSE(vision_trains(test::seeing("global_batch: 1", "lora: {rank: 4}").model));
}

// All products of the encoder's blocks, forward and backward, and its attention, counted op by op.
double planned_flops(const Plan& plan) {
  double sum = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (plan.blocks[plan.frames[plan.tasks[t].frame].block].role != BlockRole::vision || op.recompute) continue;
    const double ranks = static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity);
    if (const auto* g = std::get_if<Gemm>(&op.work)) sum += ranks * cost_of(*g, 2).flops;
    if (const auto* a = std::get_if<FlashAttention>(&op.work))
      sum += ranks * (a->direction == Direction::forward ? 4 : 8) *
             static_cast<double>(a->batch * a->heads * a->head_dim) * a->pairs;
  }
  return sum;
}

TEST(Vision, NeededFlopAreThoseOfThePlansProducts) {
  for (const char* strategy : {"global_batch: 2", "micro_batch: 2, global_batch: 4", "data: 2, global_batch: 4"}) {
    for (const char* frozen : {"", "frozen: [vision]", "frozen: [vision, projector]", "frozen: [projector]"}) {
      const Spec spec = test::seeing(strategy, frozen);
      EXPECT_DOUBLE_EQ(planned_flops(make_plan(spec)), vision_flops(spec)) << strategy << ' ' << frozen;
    }
  }
}

TEST(Vision, ForwardIsAThirdOfATrainedEncoderExceptItsPixels) {
  const Spec spec = test::seeing("global_batch: 1");
  // The product that embeds patches has no gradient of its input, the pixels.
  const double patches = 2 * 16 * 32 * static_cast<double>(spec.model.vision->patches.pixels());
  EXPECT_DOUBLE_EQ(2 * (3 * encoder_products(spec) - patches), vision_flops(spec));
}

TEST(Vision, WindowsBoundThePairs) {
  const Spec all = test::seeing("global_batch: 1"),
             windowed = test::seeing("global_batch: 1", "", "window: 4, full_layers: [1]");
  // One of two layers attends within windows of 4 of 16 patches: forward and backward of two images and 12 fewer keys.
  EXPECT_DOUBLE_EQ(vision_flops(all) - vision_flops(windowed), 6. * 2 * 16 * 12 * 2 * 32);
  EXPECT_DOUBLE_EQ(planned_flops(make_plan(windowed)), vision_flops(windowed));
}

}  // namespace
}  // namespace orrery
