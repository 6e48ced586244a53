#include "sim/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "sim/predict.h"
#include "sim/search_report.h"
#include "tests/sim/small_space.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::offload_space;
using test::points_of;
using test::small_space;
using test::SmallSpace;
using test::space_of;
using test::wide_space;
using test::with_peers;

// The least step time of all points that fit. Each is played no longer than the best of those before it.
std::optional<double> least_of_all(const Space& space, const Profile& profile, const std::vector<Point>& points,
                                   Bytes most_memory) {
  std::optional<double> best;
  for (const Point& point : points) {
    const Picoseconds latest = best ? picoseconds(*best) : std::numeric_limits<Picoseconds>::max();
    const auto report = evaluate_within(space, profile, point, latest).report;
    const bool fits = report && report->memory.fits && (most_memory == 0 || report->memory.peak_device <= most_memory);
    if (fits && (!best || report->step_time_s < *best)) best = report->step_time_s;
  }
  return best;
}

// Whether a search finds the step time of the best of all points.
SearchResult expect_the_best(const SmallSpace& small, const Space& space, const std::vector<Point>& points,
                             Bytes most_memory = 0) {
  const Profile profile = profile_for(space.base(), "");
  const std::optional<double> best = least_of_all(space, profile, points, most_memory);
  SearchResult result = search(space, profile, {.most_memory = most_memory});
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(result.best.empty(), !best.has_value()) << small.text;
  if (best && !result.best.empty()) {
    EXPECT_EQ(result.best.front().report.step_time_s, *best) << small.text;
  }
  EXPECT_LE(result.counts.simulated, points.size());
  return result;
}

TEST(Search, FindsWhatTryingAllFinds) {
  std::size_t spaces = 0;
  for (std::uint64_t seed = 100; seed < 600 && spaces < 50; ++seed) {
    const SmallSpace small = small_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 120) continue;
    expect_the_best(small, space, points);
    ++spaces;
  }
  EXPECT_EQ(spaces, 50U);
}

// With contexts, experts and offload open.
TEST(Search, FindsWhatTryingAllFindsOnWiderSpaces) {
  std::size_t spaces = 0, context = 0, experts = 0, offload = 0;
  for (std::uint64_t seed = 1; seed < 60 && spaces < 25; ++seed) {
    const SmallSpace small = wide_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 300) continue;
    expect_the_best(small, space, points);
    const auto any = [&](auto has) { return std::any_of(points.begin(), points.end(), has) ? 1U : 0U; };
    context += any([](const Point& p) { return p.layout.context > 1; });
    experts += any([](const Point& p) { return p.layout.expert > 1; });
    offload += any([](const Point& p) { return p.cell.offload != "none"; });
    ++spaces;
  }
  EXPECT_EQ(spaces, 25U);
  EXPECT_GT(context, 20U);
  EXPECT_GT(experts, 5U);
  EXPECT_GT(offload, 10U);
}

// What leaves the device, where memory is short: as few layers' activations as it takes are as good as any number.
TEST(Search, FindsWhatTryingAllFindsWithOffload) {
  std::size_t spaces = 0, leave = 0, none = 0;
  for (std::uint64_t seed = 1; seed < 120 && spaces < 30; ++seed) {
    const SmallSpace small = offload_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 400) continue;
    const Profile profile = profile_for(space.base(), "");
    const auto first = evaluate(space, profile, points.front());
    if (!first) continue;
    const double share = 0.55 + 0.05 * static_cast<double>(seed % 8);
    const auto room = static_cast<Bytes>(share * static_cast<double>(first->memory.peak_device));
    const SearchResult r = expect_the_best(small, space, points, room);
    none += r.best.empty() ? 1U : 0U;
    if (!r.best.empty()) {
      const Recipe& best = r.best.front().point.cell;
      leave += best.offload != "none" || best.activations != "none" ? 1U : 0U;
    }
    ++spaces;
  }
  EXPECT_EQ(spaces, 30U);
  EXPECT_GT(leave, 5U);
  EXPECT_LT(none, 20U);
}

// With gradients that are reduced unit by unit, and states elsewhere, where backward is split or runs both ways.
TEST(Search, FindsWhatTryingAllFindsWithUnitsOfSplitAndTwoWaySchedules) {
  std::size_t spaces = 0, units = 0;
  for (std::uint64_t seed = 1; seed < 200 && spaces < 30; ++seed) {
    const SmallSpace small = test::split_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 150) continue;
    expect_the_best(small, space, points);
    units += std::any_of(points.begin(), points.end(),
                         [](const Point& p) { return p.cell.sharding == Sharding::fsdp && p.cell.schedule != "1f1b"; })
                 ? 1U
                 : 0U;
    ++spaces;
  }
  EXPECT_EQ(spaces, 30U);
  EXPECT_GT(units, 3U);
}

// Two copies of a model whose ends share their weights.
TEST(Search, FindsTheBestAmongTwoCopiesWithTiedEmbeddings) {
  const SmallSpace small{
      "model: {name: small, layers: 8, hidden: 1024, heads: 8, kv_heads: 8, feed_forward: 4096, vocab: 32000, "
      "tied_embeddings: true}\nsequence: 1024\ncluster: {node: dgx-a100, nodes: 1}\n"
      "strategy: {global_batch: 16, micro_batch: 1, recompute: none}\n"
      "search: {tensor: [1, 2], context: [1], pipeline: [2, 4], schedule: [1f1b, chimera], sharding: [none, zero1], "
      "overlap_tensor: [false]}\n"};
  const Space space = space_of(small);
  const std::vector<Point> points = points_of(space);
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const Point& p) { return p.cell.schedule == "chimera"; }));
  expect_the_best(small, space, points);
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

// Processes that share a search all find what one finds, by as many steps.
TEST(Search, DoesNotDependOnProcesses) {
  for (const std::uint64_t seed : {7, 104, 113}) {
    const Space space = space_of(small_space(seed));
    const Profile profile = profile_for(space.base(), "");
    const SearchResult alone = search(space, profile, {});
    for (const int processes : {2, 3}) {
      with_peers(processes, [&](Peers& peers) {
        const Space own = space_of(small_space(seed));
        SearchOptions options{};
        options.peers = &peers;
        const SearchResult r = search(own, profile, options);
        EXPECT_EQ(search_json(own, r), search_json(space, alone));
      });
    }
  }
}

// Points that the planner refuses are none of a process's own.
TEST(Search, DoesNotDependOnProcessesWhereThePlannerRefuses) {
  const SmallSpace small{
      "model: {name: small, layers: 4, hidden: 1024, heads: 8, feed_forward: 4096, vocab: 32000}\nsequence: 1024\n"
      "cluster: {node: dgx-a100, nodes: 1, stragglers: [{rank: 1, slowdown: 1.2}]}\n"
      "strategy: {global_batch: 16, micro_batch: 1, recompute: none}\n"
      "search: {tensor: [1, 2], context: [1], pipeline: [1, 2], schedule: [1f1b], sharding: [zero1, hsdp], "
      "overlap_tensor: [false]}\n"};
  const Space space = space_of(small);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult alone = search(space, profile, {});
  EXPECT_GT(alone.counts.refused, 0U);
  for (const int processes : {2, 3}) {
    with_peers(processes, [&](Peers& peers) {
      const Space own = space_of(small);
      SearchOptions options{};
      options.peers = &peers;
      EXPECT_EQ(search_json(own, search(own, profile, options)), search_json(space, alone));
    });
  }
}

TEST(Search, StopsInAllProcessesWhenToldInOne) {
  const std::atomic<bool> stop = true;
  with_peers(3, [&](Peers& peers) {
    const Space space = space_of(small_space(7));
    SearchOptions options{};
    options.peers = &peers;
    if (peers.rank() == 1) options.stop = &stop;
    const SearchResult r = search(space, profile_for(space.base(), ""), options);
    EXPECT_TRUE(r.stopped);
    EXPECT_FALSE(r.proven);
  });
}

TEST(Search, SaysHowMuchTheLeanestNeedsWhereNothingFits) {
  const std::string text =
      "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 1}\n"
      "strategy: {global_batch: 8}\nsearch: {schedule: [1f1b], recompute: [none, full], recompute_layers: [null], "
      "offload: "
      "[none], offload_activations: [none]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  const SearchResult result = search(space, profile_for(space.base(), ""), {});
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.counts.simulated, 0U);
  EXPECT_GT(result.least_memory, space.base().cluster.gpu.memory_bytes);
  EXPECT_EQ(result.reason, "");
}

// The line and the rule, where no strategy obeys the rules.
TEST(Search, SaysWhichRuleLeavesNothing) {
  const struct {
    const char *text, *rule;
  } cases[] = {
      {"model: gpt2\nsequence: 4096\ncluster: dgx-a100\nstrategy: {global_batch: 8}\n",
       "t.yaml:2: sequence: 4096 is longer than the model's 1024"},
      {"model: gpt2\nsequence: 1024\ncluster: dgx-2\nstrategy:\n  precision: bf16\n  global_batch: 8\n",
       "t.yaml:5: precision:"},
      {"model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, partition_activations: true, "
       "recompute: none}\nsearch: {offload: [none], schedule: [1f1b], sharding: [zero1]}\n",
       "partition_activations"},
      {"model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, tensor: 8, pipeline: 1}\n",
       "tensor: 8 does not divide heads: 12"},
  };
  for (const auto& c : cases) {
    const Space space(parse_open_spec(c.text, "t.yaml"), 8);
    const SearchResult result = search(space, profile_for(space.base(), ""), {});
    EXPECT_TRUE(result.best.empty());
    EXPECT_NE(result.reason.find(c.rule), std::string::npos) << result.reason;
  }
}

// Wherever a search is stopped: the optimum is no further from the best found than it says.
TEST(Search, SaysHowFarTheOptimumMayBeWhereverItIsStopped) {
  std::size_t stopped = 0, open = 0;
  for (const std::uint64_t seed : {7, 104, 113, 120}) {
    const Space space = space_of(small_space(seed));
    const Profile profile = profile_for(space.base(), "");
    const SearchResult whole = search(space, profile, {});
    ASSERT_TRUE(whole.proven);
    if (whole.best.empty()) continue;
    const double optimum = whole.best.front().report.step_time_s;
    for (int calls = 1; calls < 1000; calls += 1 + calls / 2) {
      std::atomic<bool> stop = false;
      int left = calls;
      SearchOptions options{};
      options.stop = &stop;
      options.progress = [&](std::string_view) { stop = stop || --left == 0; };
      const SearchResult r = search(space, profile, options);
      if (r.proven) break;
      ++stopped;
      if (r.best.empty()) continue;
      const double found = r.best.front().report.step_time_s;
      EXPECT_GE(found, optimum);
      EXPECT_LE(found * (1 - r.gap), optimum + 1e-12) << "seed " << seed << " after " << calls;
      open += r.gap > 0 && r.gap < 1 ? 1U : 0U;
    }
  }
  EXPECT_GT(stopped, 15U);
  EXPECT_GT(open, 10U);
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
