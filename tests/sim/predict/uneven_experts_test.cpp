// Ranks with busy experts and the others are two classes of a stage: folded and whole plans predict the same.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// Copies of a model, and a vocabulary that stages share, have groups across stages, in which the ranks with busy
// experts and the others are classes apart: the others wait for the busy ones elsewhere then, which leaves the step as
// it is.
TEST(Predict, UnevenExpertsFoldAcrossStages) {
  const std::string model =
      "{layers: 8, hidden: 256, heads: 4, feed_forward: 512, vocab: 1024, "
      "moe: {experts: 8, top_k: 2, feed_forward: 256, imbalance: 2}}";
  for (const char* schedule : {"chimera", "dualpipe", "vocab-v-half", "vocab-zb-v-alg1", "vocab-1f1b", "1f1b"}) {
    for (const char* rest : {"expert: 2, sharding: zero1", "expert: 4, sharding: zero3", "expert: 2, tensor: 2"}) {
      const Spec spec =
          parse_spec(fmt::format("{{model: {}, sequence: 512, cluster: {{node: dgx-h100, nodes: 4}}, gpus: 32, "
                                 "strategy: {{pipeline: 4, global_batch: 64, schedule: {}, {}}}}}",
                                 model, schedule, rest),
                     "uneven.yaml");
      const Prediction folded = predict(spec), all = predict(spec, true);
      EXPECT_LT(folded.plan.classes.size(), all.plan.classes.size()) << schedule << ", " << rest;
      EXPECT_EQ(all.trace.step_time, folded.trace.step_time) << schedule << ", " << rest;
      EXPECT_EQ(all.report.memory.peak, folded.report.memory.peak) << schedule << ", " << rest;
    }
  }
}

// Ranks with busy experts and the others wait for each other where gradients are summed over both.
TEST(Predict, UnevenExpertsMeetWhereEachGroupHoldsBoth) {
  const Spec spec = parse_spec(
      "{model: {layers: 4, hidden: 2048, heads: 32, feed_forward: 6144, vocab: 50257, moe: {experts: 64, top_k: 4, "
      "feed_forward: 512, dispatch: hierarchical, imbalance: {zipf: 0.5}}}, sequence: 4096, "
      "cluster: {node: dgx-a100-40gb, nodes: 1}, gpus: 8, software: {profile: orrery, compile: true}, "
      "strategy: {pipeline: 2, data: 4, expert: 2, global_batch: 8, schedule: pipedream-2bw, clip: 0, "
      "overlap: {gradient_reduce: true}}}",
      "uneven.yaml");
  const Prediction folded = predict(spec), all = predict(spec, true);
  EXPECT_LT(folded.plan.classes.size(), all.plan.classes.size());
  EXPECT_EQ(all.trace.step_time, folded.trace.step_time);
  EXPECT_EQ(all.report.memory.peak, folded.report.memory.peak);
}

}  // namespace
}  // namespace orrery
