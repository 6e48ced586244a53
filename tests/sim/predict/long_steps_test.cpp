// Steps of many micro-batches, extrapolated from short ones and simulated whole.
#include "sim/predict/long_steps.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec many(const std::string& strategy, const std::string& software = "profile: megatron-core") {
  return test::spec_of(
      "layers: 8, hidden: 1024, heads: 16, kv_heads: 8, feed_forward: 4096, vocab: 32000, tied_embeddings: false",
      strategy, 512, software);
}

void expect_same(const Report& found, const Report& whole, const std::string& what) {
  EXPECT_EQ(picoseconds(found.step_time_s), picoseconds(whole.step_time_s)) << what;
  EXPECT_EQ(found.plan_hash, whole.plan_hash) << what;
  EXPECT_NEAR(found.step_time_low_s / whole.step_time_low_s, 1, 1e-9) << what;
  EXPECT_NEAR(found.mfu / whole.mfu, 1, 1e-9) << what;
  EXPECT_NEAR(found.hfu / whole.hfu, 1, 1e-9) << what;
  EXPECT_NEAR(found.tokens_per_s / whole.tokens_per_s, 1, 1e-9) << what;
  EXPECT_NEAR(found.bubble_fraction, whole.bubble_fraction, 1e-9) << what;
  EXPECT_EQ(found.limit, whole.limit) << what;
  EXPECT_EQ(found.memory.peak_device, whole.memory.peak_device) << what;
  EXPECT_EQ(found.memory.peak, whole.memory.peak) << what;
  EXPECT_EQ(found.simulation.tasks, whole.simulation.tasks) << what;
  for (int k = 0; k < kTimeKinds; ++k)
    EXPECT_NEAR(found.time_s[k], whole.time_s[k], 1e-9 * whole.step_time_s) << what << " " << name_of(TimeKind(k));
  ASSERT_EQ(found.communication.size(), whole.communication.size()) << what;
  for (std::size_t i = 0; i < whole.communication.size(); ++i) {
    EXPECT_EQ(found.communication[i].count, whole.communication[i].count) << what;
    EXPECT_NEAR(found.communication[i].bytes_per_gpu, whole.communication[i].bytes_per_gpu,
                1e-9 * whole.communication[i].bytes_per_gpu)
        << what;
    EXPECT_NEAR(found.communication[i].exposed_s, whole.communication[i].exposed_s, 1e-9 * whole.step_time_s) << what;
  }
}

// Every schedule, a sharding of each kind, stacks whose hosts differ; among them some that do not repeat themselves.
TEST(LongSteps, AreThoseThatAreSimulatedWhole) {
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.copies > 2) continue;  // more copies than these stages take
    const std::string strategy = fmt::format("pipeline: 2, data: 2, schedule: {}, {}clip: 0, global_batch: 140",
                                             row.name, row.chunks == 0 ? "virtual_stages: 2, " : "");
    const Spec spec = many(strategy);
    const Profile profile = profile_for(spec, "");
    expect_same(predict_report(spec, profile), predict(spec, profile).report, std::string(row.name));
  }
  for (const char* strategy :
       {"data: 4, sharding: zero1, global_batch: 160", "data: 4, sharding: zero2, global_batch: 160",
        "data: 4, sharding: fsdp, global_batch: 160", "tensor: 2, pipeline: 2, recompute: full, global_batch: 70",
        "pipeline: 2, offload: {optimizer: cpu}, sharding: zero1, data: 2, global_batch: 132"}) {
    for (const char* software : {"profile: megatron-core", "profile: pytorch-fsdp", "profile: torchtitan"}) {
      const bool offloads = std::string(strategy).find("offload") != std::string::npos;
      if (offloads && std::string(software) != "profile: megatron-core") continue;  // their buckets are copies
      const Spec spec = many(strategy, software);
      const Profile profile = profile_for(spec, "");
      expect_same(predict_report(spec, profile), predict(spec, profile).report, strategy);
    }
  }
}

}  // namespace
}  // namespace orrery
