#include "sim/page/timeline.h"

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

Prediction small_prediction(const std::string& strategy, bool unfold = false) {
  return predict(
      parse_spec(
          "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 8}, software: megatron-core, strategy: " +
              strategy + "}",
          "spec.yaml"),
      unfold);
}

TEST(TimelineMarkup, HasARowForEveryStageAndKindOfTransfer) {
  const Prediction p = small_prediction("{tensor: 2, pipeline: 4, global_batch: 64, sharding: zero1}");
  const std::string markup = timeline_markup(p.plan, p.trace);
  EXPECT_TRUE(is_closed(markup));
  for (const char* words :
       {"stage 0, 16 ranks like 0", "stage 3, 16 ranks like 48", "tensor transfers", "pipeline transfers",
        "data transfers", "forward", "backward", "update", "idle", "time of the step, ms"})
    EXPECT_TRUE(has(markup, words)) << words;
  // A row of compute, of tensor, pipeline and data transfers for each of four stages.
  EXPECT_EQ(count(markup, "fill=\"#eceef2\""), 16);
}

// With split backward passes weight gradients have a colour of their own.
TEST(TimelineMarkup, NamesWhatOccursAlone) {
  const Prediction split = small_prediction("{pipeline: 4, global_batch: 64, schedule: zb-h1}");
  EXPECT_TRUE(has(timeline_markup(split.plan, split.trace), "weight gradients"));
  const Prediction plain = small_prediction("{global_batch: 64}");
  const std::string markup = timeline_markup(plain.plan, plain.trace);
  EXPECT_FALSE(has(markup, "weight gradients"));
  EXPECT_FALSE(has(markup, "pipeline transfers"));
}

TEST(TimelineMarkup, OfManyRanksShowsTheFirstAndTheLast) {
  const Prediction p = small_prediction("{tensor: 2, pipeline: 4, global_batch: 64}", true);
  ASSERT_EQ(p.plan.classes.size(), 64U);
  const std::string markup = timeline_markup(p.plan, p.trace);
  EXPECT_TRUE(has(markup, "Of 64 classes of ranks the first and the last 12 are drawn."));
  EXPECT_TRUE(has(markup, ", rank 63<"));
  EXPECT_FALSE(has(markup, ", rank 30<"));
  EXPECT_LT(markup.size(), 500'000U);
}

}  // namespace
}  // namespace orrery
