// Plans of schedules without flushes: versions of the weights, places of updates, refused settings.
#include <string>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

Plan asynchronous_plan(const std::string& strategy) { return make_plan(spec_of(kSmall, "clip: 0, " + strategy)); }

Bytes bytes_of(const Plan& plan, std::uint32_t slot, BlockRole role, std::uint16_t buffer) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.slot == slot && block.role == role) sum += block.buffers[buffer].bytes;
  }
  return sum;
}

TEST(Asynchronous, StagesKeepAsManyWeightsAsThePapersSay) {
  for (const auto& [schedule, versions] :
       std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"pipedream", {4, 3, 2, 1}},
                                                                      {"pipedream, vertical_sync: true", {4, 4, 4, 4}},
                                                                      {"pipedream-2bw", {2, 2, 2, 2}}}) {
    const Plan plan = asynchronous_plan("pipeline: 4, global_batch: 4, schedule: " + schedule);
    for (std::uint32_t s = 0; s < 4; ++s) {
      const Bytes newest = bytes_of(plan, s, BlockRole::state, kParameters);
      const Bytes older = (versions[s] - 1) * newest;
      EXPECT_EQ(plan.classes[s].versions, versions[s]) << schedule;
      EXPECT_EQ(versions[s] == 1 ? 0 : bytes_of(plan, s, BlockRole::version, kParameters), older) << schedule;
    }
  }
}

// Forward and backward of a micro-batch use the same weights; the weights of an update are written before any op reads
// them, and its last gradient is added before.
TEST(Asynchronous, UpdatesStandBetweenTheirGradientsAndTheirReaders) {
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    const Plan plan = asynchronous_plan("pipeline: 4, global_batch: 4, schedule: " + schedule);
    EXPECT_EQ(plan.update_every, schedule == "pipedream" ? 1 : 4);
    for (const RankClass& slot : plan.classes) {
      std::int64_t summed = 0, updates = 0;
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        const Frame& frame = plan.frames[plan.tasks[t].frame];
        const bool update = std::holds_alternative<Update>(plan.op_of(t).work);
        const bool layer = plan.blocks[frame.block].role == BlockRole::layer;
        if (plan.op_of(t).phase == Phase::backward && layer) summed = frame.micro_batch + 1;
        if (!update) continue;
        EXPECT_EQ(summed, ++updates * plan.update_every);
        EXPECT_EQ(frame.micro_batch, summed - 1);
      }
      EXPECT_EQ(updates * plan.update_every, plan.micro_batches);
    }
  }
}

TEST(Asynchronous, RefusesWhatWouldWaitForAllStages) {
  const auto refused = [](const std::string& strategy, const std::string& what) {
    try {
      make_plan(spec_of(kSmall, strategy));
      ADD_FAILURE() << strategy;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  const std::string some = "pipeline: 4, global_batch: 8, schedule: pipedream";
  refused(some, "clip above 0 with updates on their way over several stages");
  refused(some + ", clip: 0, precision: fp16", "strategy.precision");
  refused(some + ", clip: 0, precision: fp8", "strategy.precision");
  refused(some + ", clip: 0, sharding: zero1, data: 2", "strategy.sharding");
  refused(some + ", clip: 0, offload: {optimizer: cpu}", "strategy.offload");
  refused("clip: 0, pipeline: 4, global_batch: 2, schedule: pipedream-2bw", "strategy.global_batch");
  refused("clip: 0, pipeline: 4, global_batch: 1, schedule: pipedream-2bw", "strategy.global_batch");
  refused("vertical_sync: true, pipeline: 2, global_batch: 2",
          "strategy.vertical_sync: vertical_sync with a schedule that does not update after every micro-batch");
}

}  // namespace
}  // namespace orrery
