// Bytes of checkpoints by closed form, and the time that they take.
#include "sim/report/checkpoint.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/goodput.h"

namespace orrery {
namespace {

Spec writing_spec(const std::string& strategy, const std::string& checkpoint = "{every: 100}",
                  const std::string& model = "llama-3.2-1b") {
  return parse_spec("model: " + model +
                        "\nsequence: 2048\ncluster: {node: dgx-h100, nodes: 2, nvme: {TB: 10, read_GBps: 20, "
                        "write_GBps: 10}, storage: {write_GBps: 16}}\nstrategy: {global_batch: 16, " +
                        strategy + ", checkpoint: " + checkpoint + "}\n",
                    "t.yaml");
}

// Every weight is written once with its states: (w + 12) bytes with mixed Adam, 12 where shards are in fp32 alone.
TEST(Checkpoint, HasEveryWeightAndStateOnce) {
  const std::pair<const char*, Bytes> cases[] = {{"sharding: none", 14},
                                                 {"sharding: zero1", 14},
                                                 {"sharding: zero3", 14},
                                                 {"sharding: fsdp", 12},
                                                 {"sharding: hsdp, shard_group: 8", 12},
                                                 {"pipeline: 4, sharding: zero1", 14},
                                                 {"context: 2, sharding: zero1", 14},
                                                 {"optimizer: sgd", 6}};
  for (const auto& [strategy, width] : cases) {
    const Spec spec = writing_spec(strategy);
    EXPECT_EQ(checkpoint_width(spec), width) << strategy;
    const double weights = static_cast<double>(parameter_count(spec.model, spec.sequence));
    const CheckpointCost cost = checkpoint_cost(spec, make_plan(spec), 1);
    // The tied table of a pipeline's two ends is written twice.
    const double table = spec.strategy.pipeline > 1 ? static_cast<double>(spec.model.vocab * spec.model.hidden) : 0;
    EXPECT_NEAR(static_cast<double>(cost.bytes) / (static_cast<double>(width) * (weights + table)), 1, 0.002)
        << strategy;
  }
}

// Experts are on fewer ranks than other weights.
TEST(Checkpoint, HasEveryExpertOnce) {
  const std::string moe =
      "{layers: 2, hidden: 512, heads: 8, feed_forward: 1024, vocab: 1024, moe: {experts: 8, top_k: 2, "
      "feed_forward: 1024}}";
  for (const char* strategy : {"expert: 8", "expert: 2", "expert: 4, tensor: 2, expert_tensor: 2"}) {
    const Spec spec = writing_spec(strategy, "{every: 100}", moe);
    const double all = static_cast<double>(parameter_count(spec.model, spec.sequence)) * 14;
    EXPECT_NEAR(static_cast<double>(checkpoint_cost(spec, make_plan(spec), 1).bytes) / all, 1, 0.005) << strategy;
  }
}

TEST(Checkpoint, TrainingWaitsForTheWritingOrForTheCopiesAlone) {
  const Bytes rank = 10'000'000'000;  // 80 GB from a node
  const auto cost = [&](const char* checkpoint, Seconds step) {
    return checkpoint_cost(writing_spec("sharding: zero1", checkpoint), 16 * rank, rank, step);
  };
  const CheckpointCost waits = cost("{every: 100, asynchronous: false}", 1);
  EXPECT_DOUBLE_EQ(waits.writing, 8);  // 80 GB at 10 GB/s
  EXPECT_DOUBLE_EQ(waits.stall, 8);
  EXPECT_EQ(waits.host_bytes, 0);
  EXPECT_NEAR(waits.step_share, 8.0 / 108, 1e-9);
  const CheckpointCost beside = cost("{every: 100}", 1);
  EXPECT_DOUBLE_EQ(beside.stall, beside.copies);
  EXPECT_LT(beside.copies, 0.5);
  EXPECT_EQ(beside.host_bytes, 8 * rank);
  EXPECT_LT(beside.run_share, waits.run_share);
  // Two steps are shorter than the writing: training waits for the rest of it.
  EXPECT_DOUBLE_EQ(cost("{every: 2}", 1).stall, beside.copies + 6);
  // Two nodes share 16 GB/s.
  EXPECT_DOUBLE_EQ(cost("{every: 100, to: storage}", 1).writing, 10);
}

TEST(Checkpoint, IsInTheReport) {
  const Spec spec = writing_spec("sharding: zero1");
  const Report r = predict_report(spec, profile_for(spec, ""));
  ASSERT_TRUE(r.checkpoint.has_value());
  EXPECT_NE(to_json(r).find("\"checkpoint\""), std::string::npos);
  EXPECT_NE(checkpoint_text(spec, *r.checkpoint, "  ").find("every 100 steps"), std::string::npos);
  Spec none = spec;
  none.strategy.checkpoint.reset();
  EXPECT_EQ(predict_report(none, profile_for(none, "")).step_time_s, r.step_time_s);
}

}  // namespace
}  // namespace orrery
