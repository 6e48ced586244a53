#include "sim/techniques.h"

#include <gtest/gtest.h>

#include "sim/predict.h"

namespace orrery {
namespace {

Spec cut_in_two(const std::vector<std::string>& overrides) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 2}, strategy: {tensor: 2, pipeline: 2, "
      "sharding: zero1, recompute: full, global_batch: 16}}",
      "spec.yaml", overrides);
}

// What a spec has comes first, each with what it saves and costs; its other spec keeps GPUs, batch and all else.
TEST(Techniques, AreThoseOfTheSpecFirst) {
  const Spec spec = cut_in_two({});
  std::vector<std::string> used;
  bool others = false;
  for (const Technique& t : techniques(spec)) {
    EXPECT_EQ(t.other.strategy.gpus(), spec.strategy.gpus()) << t.name;
    EXPECT_EQ(t.other.strategy.global_batch, spec.strategy.global_batch) << t.name;
    EXPECT_FALSE(t.used && others) << t.name;
    EXPECT_EQ(t.used, !t.saves.empty()) << t.name;
    EXPECT_EQ(t.used, !t.costs.empty()) << t.name;
    others = others || !t.used;
    if (t.used) used.push_back(t.name);
  }
  EXPECT_EQ(used,
            (std::vector<std::string>{"zero1 over 4 ranks", "tensor parallelism over 2 ranks", "sequence parallelism",
                                      "pipeline of 2 stages, 1f1b", "full recomputation", "overlap"}));
  EXPECT_TRUE(others);
}

TEST(Techniques, AreWorthWhatSimulationSays) {
  const Spec spec = cut_in_two({});
  const Prediction p = predict(spec);
  const std::vector<Effect> one = effects(p.profile, p.report, techniques(spec), 1),
                            three = effects(p.profile, p.report, techniques(spec), 3);
  ASSERT_EQ(one.size(), three.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(text_of(one[i]), text_of(three[i]));
  for (const Effect& e : one) {
    if (e.technique.name != "full recomputation") continue;
    const Report other = predict(cut_in_two({"strategy.recompute=none"})).report;
    EXPECT_DOUBLE_EQ(e.step_s, other.step_time_s);
    EXPECT_EQ(e.more, other.memory.peak_device - p.report.memory.peak_device);
    EXPECT_LT(e.slower, 0);
    EXPECT_NE(text_of(e).find("without it: "), std::string::npos);
    EXPECT_NE(text_of(e).find("faster"), std::string::npos);
    EXPECT_NE(text_of(e).find("more a GPU"), std::string::npos);
  }
}

TEST(Techniques, SayWhichRuleForbids) {
  const Spec spec = cut_in_two({"strategy.micro_batch=4"});
  const Prediction p = predict(spec);
  bool refused = false;
  for (const Effect& e : effects(p.profile, p.report, techniques(spec), 1)) {
    if (e.technique.name != "tensor parallelism over 2 ranks") continue;
    EXPECT_NE(text_of(e).find("not possible: global_batch: 16 is not a multiple"), std::string::npos) << text_of(e);
    refused = !e.refused.empty();
  }
  EXPECT_TRUE(refused);
}

// One GPU, one node, no NVLink, no InfiniBand.
TEST(Techniques, KnowTheUsualSituations) {
  const Spec spec = cut_in_two({});
  const Prediction p = predict(spec);
  std::vector<std::string> names;
  for (const Effect& e : effects(p.profile, p.report, situations(spec), 1)) {
    EXPECT_EQ(e.refused, "") << e.technique.name;
    EXPECT_TRUE(!e.technique.name.starts_with("no ") || e.slower > 0) << e.technique.name;
    names.push_back(e.technique.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"one GPU", "one node", "no NVLink", "no infiniband"}));
}

}  // namespace
}  // namespace orrery
