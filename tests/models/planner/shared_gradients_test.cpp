// Gradients that ranks of a model sum: volume and order, with an optimizer on the host.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

// The gradients of norms are summed over tensor ranks before they are offloaded, in each rank's shards; if gradients
// stay on the device to the end, those of the whole chunk are summed.
TEST(SharedGradients, AreSummedBeforeTheyLeave) {
  const std::string small = "name: s, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256";
  for (const char* offload : {"optimizer: cpu, gradients: cpu", "optimizer: cpu"}) {
    for (const char* sharding : {"zero1", "zero2"}) {
      const Plan plan = make_plan(spec_of(small, fmt::format("precision: bf16, gradient_precision: bf16, tensor: 2, "
                                                             "data: 4, sharding: {}, global_batch: 8, offload: {{{}}}",
                                                             sharding, offload)));
      Bytes summed = 0;
      std::map<std::uint32_t, TaskId> last;  // last sum, by frame
      for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
        const Op& op = plan.op_of(t);
        const std::uint32_t frame = plan.tasks[t].frame;
        if (op.name == "reduce norm gradients") {
          summed += std::get<Collective>(op.work).bytes;
          EXPECT_FALSE(last.contains(frame)) << "once a step";
          last[frame] = t;
        }
        if (op.name != "gradients down" || !last.contains(frame)) continue;
        const auto needs = plan.dependencies_of(t);
        EXPECT_TRUE(std::any_of(needs.begin(), needs.end(), [&](TaskId n) {
          return plan.op_of(n).lane == plan.op_of(last[frame]).lane && n >= last[frame];
        })) << sharding;
      }
      const bool by_unit = std::string(sharding) == "zero2" || std::string(offload).ends_with("gradients: cpu");
      // Two norms a layer and the final one; a rank's quarter of each.
      EXPECT_EQ(summed, 5 * 64 * 2 / (by_unit ? 4 : 1)) << sharding << " " << offload;
    }
  }
}

// The gradient of a token-embedding table on two stages is summed once all of the step's gradients are in it, and is
// offloaded then.
TEST(SharedGradients, OfATableWaitForTheOtherStage) {
  const std::string tied =
      "name: s, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, tied_embeddings: true";
  const Plan plan = make_plan(spec_of(
      tied, "pipeline: 2, data: 2, sharding: zero2, global_batch: 8, offload: {optimizer: cpu, gradients: cpu}"));
  for (const RankClass& slot : plan.classes) {
    TaskId summed = kNone, update = kNone;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan.op_of(t);
      if (op.name == "reduce tied embedding") {
        EXPECT_EQ(summed, kNone) << "once a step";
        EXPECT_EQ(std::get<Collective>(op.work).bytes, 256 * 64 / 2 * 4);
        summed = t;
      }
      if (op.name == "update" && update == kNone) update = t;
      if (summed == kNone || update != kNone || op.name != "gradients down") continue;
      EXPECT_EQ(plan.tasks[t].frame, plan.tasks[summed].frame) << "the last to leave";
    }
    EXPECT_LT(summed, update) << slot.name;
  }
}

}  // namespace
}  // namespace orrery
