#include "sim/search.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/error.h"
#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "sim/predict.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

struct SmallSpace {
  std::string text;
  std::int64_t gpus = 8;
};

struct Draw {
  std::uint64_t seed = 0, count = 0;
  std::size_t below(std::size_t n) { return test::random_bits(seed * 1'000'003 + count++) % n; }
};

// A small model on one or two nodes, with some axes open and others drawn.
SmallSpace small_space(std::uint64_t seed) {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  SmallSpace s;
  const bool experts = random.below(5) == 0;
  s.gpus = random.below(3) == 0 ? 16 : 8;
  const std::string node = pick("dgx-a100", "dgx-h100", "dgx-h100");
  const std::string software =
      experts ? "megatron-core" : pick("megatron-core", "megatron-lm-2022", "pytorch-fsdp", "torchtitan");
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 16, kv_heads: {}, feed_forward: {}, vocab: 32000, gated: "
      "{}, "
      "tied_embeddings: {}{}}}\nsequence: {}\ncluster: {{node: {}, nodes: 2}}\nsoftware: {}\n",
      pick(4, 6, 8), pick(1024, 2048, 4096), pick(4, 16), pick(4096, 8192), pick(true, false),
      experts ? "false" : pick(true, false), experts ? ", moe: {experts: 8, top_k: 2, feed_forward: 2048}" : "",
      pick(1024, 2048, 4096), node, software);
  s.text += fmt::format("strategy: {{global_batch: {}, clip: {}}}\n", pick(16, 32), pick(0.0, 1.0));
  std::vector<std::string> ranges;
  const auto range = [&](std::string_view key, std::vector<std::string> values) {
    ranges.push_back(fmt::format("{}: [{}]", key, fmt::join(values, ", ")));
  };
  range("tensor", {"1", pick(2, 4), "8"});
  range("context", {"1", pick(1, 2)});
  range("pipeline", {"1", pick(2, 4)});
  range("virtual_stages", {"1", "2"});
  range("micro_batch", {pick(1, 2), pick(1, 4)});
  range("schedule", {"1f1b", pick("gpipe", "interleaved", "zb-h1", "zb-h2", "naive")});
  range("sharding", {pick("none", "zero1"), pick("zero1", "zero2", "zero3", "fsdp", "hsdp", "fsdp-grad-op")});
  range("recompute", {"none", pick("selective", "full", "mlp")});
  range("recompute_layers", {"null", "1"});
  range("sequence_parallel", {"true", pick(true, false)});
  range("rank_order", {pick("tp-cp-dp-pp", "tp-cp-pp-dp")});
  range("overlap_tensor", {pick(false, false, true)});
  range("overlap_gradient_reduce", {"true", pick(true, false)});
  range("overlap_parameter_gather", {pick(true, false)});
  range("overlap_pipeline", {pick(true, true, false)});
  s.text += fmt::format("search: {{{}}}\n", fmt::join(ranges, ", "));
  return s;
}

Space space_of(const SmallSpace& s) { return {parse_open_spec(s.text, "small.yaml"), s.gpus}; }

std::vector<Point> points_of(const Space& space) {
  std::vector<Point> points;
  for (const Degrees& layout : space.layouts()) {
    for (const Recipe& cell : space.cells(layout)) {
      for (const Features& features : space.features(layout, cell)) points.push_back({layout, cell, features});
    }
  }
  return points;
}

TEST(Search, BoundsAreBelowWhatIsSimulated) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const SmallSpace small = small_space(seed);
    const Space space = space_of(small);
    const Profile profile = profile_for(space.base(), "");
    StackCosts costs(space.base(), profile);
    Bounds bounds(space, profile, costs);
    const std::vector<Point> points = points_of(space);
    Draw random{seed + 1000};
    for (int i = 0; i < 20 && !points.empty(); ++i) {
      const Point& point = points[random.below(points.size())];
      const auto report = evaluate(space, profile, point);
      if (!report) continue;
      const Picoseconds step = picoseconds(report->step_time_s);
      const Bound layout = bounds.of(point.layout);
      bounds.enter(point.layout);
      ASSERT_TRUE(bounds.possible(point.cell)) << space.text_of(point);
      const Bound cell = bounds.of(point.cell);
      const Bound whole = bounds.of(point.features);
      const std::string what = fmt::format("seed {} {}\n{}", seed, space.text_of(point), small.text);
      EXPECT_LE(layout.time, step) << what;
      EXPECT_LE(cell.time, step) << what;
      EXPECT_LE(whole.time, step) << what;
      EXPECT_LE(cell.memory, report->memory.peak_device) << what;
      EXPECT_GE(whole.time, cell.time) << what;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500U);
}

TEST(Search, FindsWhatTryingAllFinds) {
  std::size_t spaces = 0;
  for (std::uint64_t seed = 100; seed < 300 && spaces < 50; ++seed) {
    const SmallSpace small = small_space(seed);
    const Space space = space_of(small);
    const Profile profile = profile_for(space.base(), "");
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 100) continue;
    std::optional<double> best;
    for (const Point& point : points) {
      const auto report = evaluate(space, profile, point);
      if (report && report->memory.fits && (!best || report->step_time_s < *best)) best = report->step_time_s;
    }
    const SearchResult result = search(space, profile, {});
    EXPECT_TRUE(result.proven);
    ASSERT_EQ(result.best.empty(), !best.has_value()) << small.text;
    if (best) {
      EXPECT_EQ(result.best.front().report.step_time_s, *best) << small.text;
    }
    EXPECT_LE(result.counts.simulated, points.size());
    ++spaces;
  }
  EXPECT_EQ(spaces, 50U);
}

TEST(Search, DoesNotDependOnThreads) {
  const Space space = space_of(small_space(7));
  const Profile profile = profile_for(space.base(), "");
  SearchOptions one{}, three{.threads = 3};
  const SearchResult a = search(space, profile, one), b = search(space, profile, three);
  ASSERT_EQ(a.best.size(), b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) EXPECT_EQ(a.best[i].place, b.best[i].place);
  EXPECT_EQ(a.counts.points, b.counts.points);
  EXPECT_EQ(a.counts.bounded, b.counts.bounded);
  EXPECT_EQ(a.counts.simulated, b.counts.simulated);
}

TEST(Search, PointIsTheSpecThatItsOverridesMake) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
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
  }
}

TEST(Search, GivenKeysAreFixedAndListedOnesRestricted) {
  const std::string text =
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 8}\n"
      "strategy: {tensor: 8, global_batch: 64, sharding: zero1}\nsearch: {pipeline: [2, 4]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 64);
  const std::vector<Degrees> layouts = space.layouts();
  ASSERT_FALSE(layouts.empty());
  for (const Degrees& l : layouts) {
    EXPECT_EQ(l.tensor, 8);
    EXPECT_TRUE(l.pipeline == 2 || l.pipeline == 4);
    for (const Recipe& cell : space.cells(l)) EXPECT_EQ(cell.sharding, Sharding::zero1);
  }
}

TEST(Search, RefusesWhatIsNoAxis) {
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

TEST(Search, SaysHowMuchTheLeanestNeedsWhereNothingFits) {
  const std::string text =
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 1}\n"
      "strategy: {global_batch: 8}\nsearch: {schedule: [1f1b], recompute: [none, full], recompute_layers: [null]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  const SearchResult result = search(space, profile_for(space.base(), ""), {});
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.counts.simulated, 0U);
  EXPECT_GT(result.least_memory, space.base().cluster.gpu.memory_bytes);
}

TEST(Search, StopsWhenTold) {
  const Space space = space_of(small_space(7));
  const std::atomic<bool> stop = true;
  const SearchResult result = search(space, profile_for(space.base(), ""), {.stop = &stop});
  EXPECT_FALSE(result.proven);
  EXPECT_EQ(result.gap, 1);
}

}  // namespace
}  // namespace orrery
