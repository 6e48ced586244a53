#include "sim/explain/techniques.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec cut_in_two(const std::vector<std::string>& overrides) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 2}, strategy: {tensor: 2, pipeline: 2, "
      "sharding: zero1, recompute: full, global_batch: 16}}",
      "spec.yaml", overrides);
}

// The techniques that a spec uses come first, each with its saving and cost; the spec to compare with keeps GPUs, batch
// and everything else.
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

Spec spec_with(const std::string& strategy) {
  return parse_spec(
      "model: {name: small, layers: 8, hidden: 256, heads: 16, feed_forward: 1024, vocab: 1024}\nsequence: 128\n"
      "cluster: {node: dgx-h100, nodes: 8}\nsoftware: orrery\nstrategy: {" +
          strategy + "}\n",
      "spec.yaml");
}

TEST(Techniques, NameRoundedWeightsAndOtherJobs) {
  const auto named = [](const Spec& spec, const std::string& start) {
    const std::vector<Technique> all = techniques(spec);
    return std::find_if(all.begin(), all.end(), [&](const Technique& t) { return t.name.starts_with(start); }) !=
           all.end();
  };
  const std::string rounded = "weights rounded to int8";
  EXPECT_FALSE(named(spec_with("data: 64, global_batch: 64"), rounded));
  EXPECT_TRUE(named(spec_with("data: 64, global_batch: 64, quantise: {weights: int8}"), rounded));
  Spec shared = spec_with("data: 64, global_batch: 64");
  shared.cluster.network.emplace().jobs = {"a.yaml", "b.yaml"};
  EXPECT_TRUE(named(shared, "2 other jobs on the cluster"));
}

// Options of a technique are removed together with it, so that no spec to compare with is refused because of them.
TEST(Techniques, OfEveryKindHaveOthersThatCanBePlanned) {
  struct Asked {
    std::string strategy, technique;
  };
  for (const Asked& c : std::vector<Asked>{
           {"tensor: 4, tensor_kind: 2d, data: 4, micro_batch: 2, global_batch: 64", "2d tensor grid of 2 x 2 ranks"},
           {"tensor: 8, tensor_kind: 2.5d, tensor_depth: 2, data: 1, sharding: zero1, micro_batch: 4, global_batch: 64",
            "zero1 over 2 ranks"},
           {"tensor: 8, tensor_kind: 3d, data: 2, micro_batch: 4, global_batch: 64", "the grid"},
           {"data: 16, sharding: parameter-server, parameter_server: {servers: 4}, global_batch: 64",
            "4 parameter servers, sync"},
           {"data: 16, clip: 0, sharding: parameter-server, parameter_server: {mode: async}, global_batch: 64",
            "no waiting at all"},
           {"data: 16, clip: 0, sharding: parameter-server, parameter_server: {servers: 2, mode: ssp, staleness: 2}, "
            "global_batch: 64",
            "staleness of at most 2 steps"},
           {"data: 16, clip: 0, sharding: parameter-server, parameter_server: {servers: 4, replicas: 2}, "
            "global_batch: 64",
            "chains of 2 servers"},
           {"data: 8, sharding: data-parallel, global_batch: 64", "DataParallel"},
           {"pipeline: 4, data: 4, clip: 0, schedule: pipedream, vertical_sync: true, global_batch: 64",
            "asynchronous updates, pipedream"},
           {"pipeline: 4, data: 4, clip: 0, schedule: pipedream-2bw, global_batch: 64",
            "asynchronous updates, pipedream-2bw"},
           {"pipeline: 4, data: 4, schedule: bpipe, global_batch: 64", "activations left with another stage, bpipe"},
           {"pipeline: 4, data: 4, virtual_stages: 2, schedule: interleaved, interleave_group: 8, extra_warm_up: 1, "
            "global_batch: 64",
            "2 virtual stages a rank"},
           {"pipeline: 2, data: 4, virtual_stages: 2, schedule: interleaved, overlap: {micro_batches: true}, "
            "global_batch: 64",
            "woven micro-batches"},
           {"tensor: 4, sequence_parallel: false, data: 4, recompute: full, partition_activations: true, "
            "global_batch: 64",
            "full recomputation"},
           {"data: 8, sharding: zero1, fused_buffers: true, global_batch: 64", "buffers of constant size (ZeRO-R)"},
           {"tensor: 4, sequence_parallel: false, data: 4, recompute: full, partition_activations: true, "
            "contiguous_activations: true, global_batch: 64",
            "partitioned checkpoints (ZeRO-R)"},
           {"data: 8, recompute: full, contiguous_activations: true, global_batch: 64",
            "checkpoints side by side (ZeRO-R)"},
           {"data: 8, sharding: zero3, offload: {tiling: 2}, attention: unfused, global_batch: 64",
            "operators in 2 tiles"},
           {"pipeline: 4, data: 4, schedule: zb-h1, global_batch: 64", "backward in two parts, zb-h1"},
           {"pipeline: 4, data: 4, virtual_stages: 2, schedule: v-half, global_batch: 64",
            "backward in two parts, v-half"},
           {"pipeline: 4, data: 4, schedule: chimera, overlap: {gradient_reduce: false}, global_batch: 64",
            "2 copies of the model in opposite directions, chimera"}}) {
    const Spec spec = spec_with(c.strategy);
    bool named = false;
    std::vector<Technique> all = techniques(spec);
    const std::vector<Technique> around = situations(spec);
    all.insert(all.end(), around.begin(), around.end());
    for (const Technique& t : all) {
      named = named || (t.used && t.name == c.technique);
      try {
        check(t.other);
        make_plan(t.other);
      } catch (const Error& e) {
        ADD_FAILURE() << c.strategy << ": " << t.name << ", " << t.instead << ": " << e.what();
      }
    }
    EXPECT_TRUE(named) << c.strategy << ": " << c.technique;
  }
}

// Without a teacher there are no experts to share out if the student has none, and flat dispatch is that of both
// models.
TEST(Techniques, OfATeacherOfExpertsLeaveNothingOfIt) {
  const Spec spec = parse_spec(
      "model: {layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 256}\nteacher: {layers: 2, hidden: 64, heads: "
      "4, feed_forward: 96, vocab: 256, moe: {experts: 8, top_k: 2, feed_forward: 48, shared_feed_forward: 48, "
      "dispatch: hierarchical}}\nsequence: 64\ncluster: {node: dgx-h100, nodes: 2}\nstrategy: {data: 16, expert: 8, "
      "overlap: {expert: true}}\n",
      "t.yaml");
  std::vector<std::string> used;
  for (const Technique& t : techniques(spec)) {
    if (t.used) used.push_back(t.name);
    const bool alone = t.name == "a frozen teacher beside the model", flat = t.name == "two-stage dispatch";
    if (!alone && !flat) continue;
    EXPECT_NO_THROW(check(t.other)) << t.name;
    EXPECT_NE(plan_hash(make_plan(t.other)), plan_hash(make_plan(spec))) << t.name;
  }
  for (const char* name : {"a frozen teacher beside the model", "two-stage dispatch"})
    EXPECT_EQ(std::count(used.begin(), used.end(), name), 1) << name;
}

// The worth of servers and grids comes from simulating the spec without them.
TEST(Techniques, OfServersAndGridsAreWorthWhatSimulationSays) {
  for (const char* strategy : {"data: 16, sharding: parameter-server, parameter_server: {servers: 1}, global_batch: 64",
                               "tensor: 4, tensor_kind: 2d, data: 4, micro_batch: 2, global_batch: 64"}) {
    const Spec spec = spec_with(strategy);
    const Prediction p = predict(spec);
    const std::vector<Effect> all = effects(p.profile, p.report, techniques(spec), 1);
    EXPECT_EQ(all.front().refused, "") << strategy;
    EXPECT_LT(all.front().slower, 0) << strategy;  // for so small a model plain replicas are faster
    EXPECT_NE(all.front().more, 0) << strategy;
  }
}

// The effects of the usual situations are computed: one GPU, one node, no NVLink, no InfiniBand.
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
