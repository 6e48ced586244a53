#include "sim/search/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "models/base/error.h"
#include "models/load/combinations.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "models/spec/sharding.h"
#include "sim/predict/predict.h"
#include "sim/search/search.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

using test::offload_space;
using test::points_of;
using test::small_space;
using test::SmallSpace;
using test::space_of;

Space gpt_space(const std::string& strategy, std::int64_t gpus = 8) {
  return {parse_open_spec("model: llama-3.2-1b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 2}\n"
                          "strategy: {global_batch: 16, " +
                              strategy + "}\n",
                          "t.yaml"),
          gpus};
}

TEST(SearchSpace, PointIsTheSpecThatItsOverridesMake) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const SmallSpace small = small_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty()) continue;
    const Point& point = points[points.size() / 2];
    const Spec direct = space.spec_of(point);
    const Spec read = parse_spec(small.text, "small.yaml", space.overrides_of(point));
    const Profile profile = profile_for(space.base(), "");
    const auto report = evaluate(space, profile, point);
    if (!report) continue;
    EXPECT_EQ(report->plan_hash, plan_hash(make_plan(read))) << space.text_of(point);
    EXPECT_EQ(direct.strategy.bucket_MiB, read.strategy.bucket_MiB);
    ++compared;
  }
  EXPECT_GT(compared, 25U);
}

// Experts of a teacher are shared out too, and what it shares may be computed meanwhile: a point's name and overrides
// say so although the student has none.
TEST(SearchSpace, APointSaysHowATeachersExpertsLie) {
  const std::string text =
      "model: {layers: 4, hidden: 512, heads: 8, feed_forward: 1024, vocab: 1024}\nteacher: {layers: 4, hidden: 512, "
      "heads: 8, feed_forward: 1024, vocab: 1024, moe: {experts: 4, top_k: 2, feed_forward: 512, shared_feed_forward: "
      "256}}\nsequence: 512\ncluster: {node: dgx-h100, nodes: 1}\nsoftware: megatron-core\n"
      "strategy: {tensor: 2, pipeline: 1, context: 1, global_batch: 16, micro_batch: 1, sharding: none, recompute: "
      "none}\nsearch: {sequence_parallel: [true], expert: [2, 4], expert_tensor: [1, 2], overlap_expert: [true], "
      "offload: [none], "
      "offload_activations: [none], overlap_tensor: [false]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  std::set<std::string> names;
  std::size_t points = 0;
  for (const Point& point : points_of(space)) {
    const Spec read = parse_spec(text, "t.yaml", space.overrides_of(point));
    EXPECT_TRUE(point.layout.overlap_expert);
    EXPECT_EQ(plan_hash(make_plan(read)), plan_hash(make_plan(space.spec_of(point)))) << space.text_of(point);
    names.insert(space.text_of(point));
    ++points;
  }
  EXPECT_GT(points, 1U);
  EXPECT_EQ(names.size(), points);
}

TEST(SearchSpace, GivenKeysAreFixedAndListedOnesRestricted) {
  const std::string text =
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 8}\n"
      "strategy: {tensor: 8, global_batch: 64, sharding: zero1}\nsearch: {pipeline: [2, 4], offload: [none]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 64);
  const std::vector<RankLayout> layouts = space.layouts();
  ASSERT_FALSE(layouts.empty());
  for (const RankLayout& l : layouts) {
    EXPECT_EQ(l.tensor, 8);
    EXPECT_TRUE(l.pipeline == 2 || l.pipeline == 4);
    for (const MemoryPlan& cell : space.cells(l)) EXPECT_EQ(cell.sharding, find_sharding("zero1"));
  }
}

TEST(SearchSpace, RefusesWhatIsNoAxis) {
  const std::string text =
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 8}\n"
      "strategy: {global_batch: 64}\nsearch: {tensr: [2, 4]}\n";
  try {
    const Space space(parse_open_spec(text, "t.yaml"), 64);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean tensor"), std::string::npos) << e.what();
  }
}

// Changes by --set and --cluster are part of the command that repeats a point.
TEST(SearchSpace, OverridesAreAllThatThePointNeeds) {
  const std::string text =
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-a100, nodes: 1}\nstrategy: {global_batch: 16}\n";
  const std::vector<std::string> machine = {"sequence=512", "cluster={node: dgx-h100, nodes: 2}", "gpus=16"};
  const Space space(parse_open_spec(text, "t.yaml", machine), 16);
  const Point point = point_at(space, space.layouts(), {0, 0, 0, 0, -1});
  const Spec read = parse_spec(text, "t.yaml", space.overrides_of(point));
  EXPECT_EQ(read.sequence, 512);
  EXPECT_EQ(read.cluster.node_id, "dgx-h100");
  EXPECT_EQ(plan_hash(make_plan(read)), plan_hash(make_plan(space.spec_of(point))));
}

TEST(SearchSpace, CountsWhatItMakes) {
  const auto compare = [](const Space& space, const std::string& what) {
    std::uint64_t sum = 0, made = 0;
    for (const RankLayout& layout : space.layouts()) {
      sum += space.count(layout);
      for (const MemoryPlan& cell : space.cells(layout)) made += space.features(layout, cell).size();
    }
    EXPECT_EQ(sum, made) << what;
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) compare(space_of(small_space(seed)), small_space(seed).text);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) compare(space_of(offload_space(seed)), offload_space(seed).text);
  for (const char* given : {"tensor: 2, context: 1, micro_batch: 1", "tensor: 4, data: 1, pipeline: 2, micro_batch: 1"})
    compare(gpt_space(given), given);
}

TEST(SearchSpace, NoTwoPointsHaveOneName) {
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Space space = space_of(small_space(seed));
    const std::vector<Point> points = points_of(space);
    std::set<std::string> names;
    for (const Point& point : points) names.insert(space.text_of(point));
    EXPECT_EQ(names.size(), points.size()) << seed;
    all += points.size();
  }
  EXPECT_GT(all, 250U);
  // A stack whose default is another order and no overlap.
  const Space other = gpt_space(
      "tensor: 2, context: 1, micro_batch: 1}\nsoftware: {rank_order: tp-cp-pp-dp, "
      "overlap_gradient_reduce: false}\nsearch: {overlap_gradient_reduce: [true, false], offload: [none, optimizer], "
      "offload_activations: [none]");
  const std::vector<Point> points = points_of(other);
  std::set<std::string> names;
  for (const Point& point : points) names.insert(other.text_of(point));
  EXPECT_EQ(names.size(), points.size());
}

// A key whose value is a map is fixed too.
TEST(SearchSpace, MapsAreFixed) {
  const Space space = gpt_space("context_kind: {ring: 2, ulysses: 2}");
  const std::vector<RankLayout> layouts = space.layouts();
  ASSERT_FALSE(layouts.empty());
  for (const RankLayout& l : layouts) {
    EXPECT_EQ(l.context, 4);
    EXPECT_EQ(l.context_kind, "mixed");
  }
  const Spec spec = space.spec_of({layouts.front(), space.cells(layouts.front()).front(), {}});
  EXPECT_EQ(spec.strategy.context_ring, 2);
  EXPECT_EQ(spec.strategy.context_ulysses, 2);
}

TEST(SearchSpace, GivenNumberOfLayersCountsWhereAStageHasFewer) {
  const Space space = gpt_space("recompute: full, recompute_layers: 12, pipeline: 4, tensor: 2, schedule: 1f1b");
  for (const RankLayout& l : space.layouts()) {
    ASSERT_FALSE(space.cells(l).empty());
    for (const MemoryPlan& cell : space.cells(l)) EXPECT_EQ(cell.recompute_layers, 12);
  }
}

// A stack that cannot reduce sharded gradients under backward is not asked to.
TEST(SearchSpace, ShardedReductionOverlapsWhereTheStackCan) {
  const Space space = gpt_space("tensor: 1, pipeline: 1}\nsoftware: {overlap_sharded: false");
  const RankLayout l = space.layouts().front();
  for (const MemoryPlan& cell : space.cells(l)) {
    std::set<bool> seen;
    for (const Features& f : space.features(l, cell)) seen.insert(f.gradient_reduce);
    EXPECT_EQ(seen.count(true), cell.sharding == Sharding::none ? 1U : 0U);
  }
}

TEST(SearchSpace, WhatItLeavesOutIsNamed) {
  const std::vector<std::string_view> names = gpt_space("tensor: 1").left_out();
  EXPECT_NE(std::find(names.begin(), names.end(), "offload.activations"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "dualpipev"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "parameter-server"), names.end());
  EXPECT_TRUE(
      gpt_space("offload: {optimizer: cpu, gradients: none, parameters: none, activations: none}, schedule: 1f1b, "
                "sharding: zero1")
          .left_out()
          .empty());
}

std::set<std::string_view> schedules_of(const Space& space, std::int64_t pipeline) {
  std::set<std::string_view> seen;
  for (const RankLayout& l : space.layouts()) {
    if (l.pipeline != pipeline) continue;
    for (const MemoryPlan& group : space.groups(l)) seen.insert(group.schedule);
  }
  return seen;
}

// Two copies of a model need an even number of stages, woven ones many micro-batches.
TEST(SearchSpace, SchedulesObeyTheirRules) {
  const auto of = [](const std::string& model, std::int64_t pipeline, std::int64_t batch) {
    const Space space(
        parse_open_spec(fmt::format("model: {}\nsequence: 1024\ncluster: dgx-a100\nstrategy: {{tensor: 1, "
                                    "context: 1, data: 1, micro_batch: 1, global_batch: {}}}\n",
                                    model, batch),
                        "t.yaml"),
        pipeline);
    return schedules_of(space, pipeline);
  };
  EXPECT_TRUE(of("llama-2-7b", 4, 16).contains("chimera"));
  EXPECT_TRUE(of("llama-2-7b", 4, 16).contains("zb-v"));
  EXPECT_FALSE(of("llama-2-7b", 4, 16).contains("dualpipe"));
  EXPECT_FALSE(of("llama-2-7b", 4, 7).contains("chimera"));
  EXPECT_FALSE(of("llama-2-7b", 3, 16).contains("chimera"));
  EXPECT_TRUE(of("gpt2", 4, 16).contains("chimera"));  // although its embeddings are tied
}

// States that every rank has whole stay on the device; FSDP's shards do not go to disks.
TEST(SearchSpace, OffloadObeysItsRules) {
  const Space space = gpt_space(
      "context: 1, micro_batch: 1, pipeline: 1, recompute: none}\nsearch: {offload: [none, optimizer, "
      "optimizer+gradients, optimizer+parameters, optimizer+gradients+parameters]");
  std::set<std::string_view> seen;
  for (const RankLayout& l : space.layouts()) {
    for (const MemoryPlan& group : space.groups(l)) {
      seen.insert(group.offload);
      if (group.offload == "none") continue;
      EXPECT_TRUE(row_of(group.sharding).shards_optimizer || l.replicas() == 1);
      EXPECT_TRUE(!row_of(group.sharding).fp32_shards || group.offload.find("nvme") == std::string_view::npos);
    }
  }
  const auto off_disks = [](std::string_view name) { return name.find("nvme") == std::string_view::npos; };
  EXPECT_EQ(std::ssize(seen), std::count_if(offload_names().begin(), offload_names().end(), off_disks));
}

// The search tries the schedules that the table of limits leaves it.
TEST(SearchSpace, KnowsTheSchedulesThatNoLimitNames) {
  for (const ScheduleRow& row : schedule_rows()) {
    Spec spec;
    spec.strategy.schedule = row.name;
    EXPECT_EQ(has_bounds(row), first_limit(spec, Limit::search) == nullptr) << row.name;
  }
}

// Values that mean nothing, and schedules that search does not know: the line, the key, what is wrong.
TEST(SearchSpace, RefusesValues) {
  const struct {
    const char *given, *what;
  } cases[] = {
      {"}\nsearch: {tensor: [1.5]", "t.yaml:5: search.tensor: '1.5' is not a whole number"},
      {"}\nsearch: {pipeline: [0]", "search.pipeline: '0' is not a whole number of at least 1"},
      {"}\nsearch: {tensor: [null]", "search.tensor: 'null' is not"},
      {"}\nsearch: {recompute: [ful]", "search.recompute: unknown part ful; did you mean full"},
      {"}\nsearch: {context_kind: [rign]", "search.context_kind: unknown context_kind rign; did you mean ring"},
      {"}\nsearch: {rank_order: [tp-dp]", "search.rank_order: rank_order: tp-dp lacks"},
      {"}\nsearch: {sharding: [zero9]", "search.sharding: unknown"},
      {"}\nsearch: {overlap_tensor: [maybe]", "neither true nor false"},
      {"}\nsearch: {offload: [optimiser]", "search.offload: unknown offload optimiser; did you mean optimizer"},
      {"schedule: {file: order.txt}",
       "t.yaml:4: strategy.schedule: an order from a file: search has no bounds for it yet"},
  };
  for (const auto& c : cases) {
    try {
      gpt_space(c.given);
      ADD_FAILURE() << c.given;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(c.what), std::string::npos) << e.what();
    }
  }
}

// A key that was overridden when the spec was read, and that the point sets again, appears once.
TEST(SearchSpace, OverridesSetEveryKeyOnce) {
  OpenSpec open = parse_open_spec(
      "model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, tensor: 2}\n", "t.yaml");
  open.overrides = {"gpus=16", "strategy.tensor=2", "model.layers=12"};
  const Space space(std::move(open), 8);
  const RankLayout layout = space.layouts().front();
  const MemoryPlan cell = space.cells(layout).front();
  std::vector<std::string> list = space.overrides_of({layout, cell, space.features(layout, cell).front()});
  EXPECT_EQ(std::count(list.begin(), list.end(), "gpus=8"), 1);
  EXPECT_EQ(std::count(list.begin(), list.end(), "model.layers=12"), 1);
  for (std::string& o : list) o.resize(o.find('='));
  std::sort(list.begin(), list.end());
  EXPECT_EQ(std::adjacent_find(list.begin(), list.end()), list.end());
}

// A rank alone shards nothing on its device, and what is given for it still says where its states may lie beyond.
TEST(SearchSpace, OneRankKeepsTheShardingThatIsGiven) {
  const Space space(
      parse_open_spec("model: gpt2\nsequence: 1024\ncluster: dgx-a100\ngpus: 1\nsoftware: orrery\nstrategy: "
                      "{global_batch: 8, sharding: zero3}\n"
                      "search: {offload: [none, optimizer+gradients+parameters], recompute: [none]}\n",
                      "t.yaml"),
      1);
  std::set<std::pair<Sharding, std::string>> seen;
  for (const RankLayout& layout : space.layouts()) {
    for (const MemoryPlan& cell : space.cells(layout)) seen.insert({cell.sharding, std::string(cell.offload)});
  }
  EXPECT_EQ(seen, (std::set<std::pair<Sharding, std::string>>{
                      {Sharding::none, "none"}, {find_sharding("zero3"), "optimizer+gradients+parameters"}}));
}

}  // namespace
}  // namespace orrery
