#include "viz/predicted/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/temporary_folder.h"

using namespace orrery;

namespace {

const std::string kPath = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

std::size_t knob(const WhatIf& w, const std::string& key) {
  const auto& all = w.knobs();
  return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), [&](const Knob& k) { return k.key == key; }) -
                                  all.begin());
}

}  // namespace

TEST(WhatIf, StandsAtTheFileAtFirst) {
  const WhatIf w(kPath);
  const Spec spec = w.spec();
  EXPECT_EQ(spec.strategy.tensor, 8);
  EXPECT_EQ(w.knobs()[knob(w, "strategy.sharding")].value, "zero1");
}

TEST(WhatIf, ChangesGoTogether) {
  WhatIf w(kPath);
  w.set(knob(w, "strategy.tensor"), "4");
  w.set(knob(w, "strategy.pipeline"), "4");
  w.set(knob(w, "network"), "2");
  const Spec spec = w.spec(), before = WhatIf(kPath).spec();
  EXPECT_EQ(spec.strategy.tensor, 4);
  EXPECT_EQ(spec.strategy.data, 4);
  EXPECT_EQ(spec.cluster.nic_Gbps, 2 * before.cluster.nic_Gbps);
}

TEST(WhatIf, EveryDimensionOfAStrategyCanBeChanged) {
  WhatIf w(kPath);
  w.set(knob(w, "strategy.context"), "2");
  EXPECT_EQ(w.spec().strategy.context, 2);
  EXPECT_EQ(w.spec().strategy.data, WhatIf(kPath).spec().strategy.data / 2);
  w.set(knob(w, "strategy.context"), "1");
  w.set(knob(w, "strategy.precision"), "fp16");
  EXPECT_EQ(w.spec().strategy.precision, Precision::fp16);
  w.set(knob(w, "strategy.offload.optimizer"), "cpu");
  EXPECT_EQ(w.spec().strategy.offload.optimizer, MemoryTier::host);
  EXPECT_EQ(w.knobs()[knob(w, "strategy.offload.activations")].value, "none");
  for (const Choice& c : w.choices(knob(w, "strategy.expert")))
    EXPECT_EQ(c.reason.empty(), c.value == "1") << c.value;  // the model has no experts
  WhatIf experts(std::string(ORRERY_SOURCE_DIR) + "/examples/deepseek-v3-2048.yaml");
  const std::int64_t before = experts.spec().strategy.expert;
  experts.set(knob(experts, "strategy.expert"), std::to_string(before / 2));
  EXPECT_EQ(experts.spec().strategy.expert, before / 2);
}

TEST(WhatIf, MoreMicroBatchesTakeLonger) {
  WhatIf w(kPath);
  const Spec before = w.spec();
  const std::size_t batch = knob(w, "strategy.global_batch");
  w.set(batch, std::to_string(2 * before.strategy.global_batch));
  EXPECT_EQ(w.spec().strategy.global_batch, 2 * before.strategy.global_batch);
  EXPECT_GT(predict_step(w.spec())->prediction.trace.step_time, predict_step(before)->prediction.trace.step_time);
}

TEST(WhatIf, SaysWhyAChoiceIsImpossible) {
  WhatIf w(kPath);
  const auto choices = w.choices(knob(w, "strategy.virtual_stages"));
  const auto open = std::count_if(choices.begin(), choices.end(), [](const Choice& c) { return c.reason.empty(); });
  EXPECT_GE(open, 1);
  EXPECT_LT(open, static_cast<std::ptrdiff_t>(choices.size()));
  const auto closed = std::find_if(choices.begin(), choices.end(), [](const Choice& c) { return !c.reason.empty(); });
  EXPECT_THROW(w.set(knob(w, "strategy.virtual_stages"), closed->value), Error);
  EXPECT_EQ(w.spec().strategy.virtual_stages, 1);
}

// Layouts of a generated text differ in their degrees alone, and have times too.
TEST(WhatIf, CandidatesOfGeneratedTextCanBeTried) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("text.yaml");
  std::ofstream(path) << "{model: gpt2, cluster: {node: dgx-a100, nodes: 1}, gpus: 2, generate: {input: 16, output: 4, "
                         "batch: 2}}";
  const auto all = candidates(path, 1000);
  ASSERT_EQ(all.size(), 3u);  // tensor, pipeline or data ranks
  for (const Candidate& c : all) {
    const Tried t = try_candidate(path, c);
    EXPECT_EQ(t.error, "");
    EXPECT_GT(t.step_s, 0);
    EXPECT_TRUE(t.fits);
  }
}

TEST(WhatIf, CandidatesAreValidAndCanBeTried) {
  const auto all = candidates(kPath, 1000);
  EXPECT_EQ(candidates(kPath, 3).size(), 3u);
  ASSERT_GE(all.size(), 20u);
  for (const Candidate& c : all) EXPECT_NO_THROW(load_spec(kPath, c.overrides)) << name_of(c);
  const Tried t = try_candidate(kPath, all.back());
  EXPECT_TRUE(t.error.empty()) << t.error;
  EXPECT_GT(t.step_s, 0);
  EXPECT_GT(t.memory, 0);
}
