#include "sim/search.h"

#include <gtest/gtest.h>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "sim/predict.h"
#include "sim/search_report.h"
#include "tests/sim/small_space.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::points_of;
using test::small_space;
using test::SmallSpace;
using test::space_of;
using test::with_peers;

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
      "strategy: {global_batch: 8}\nsearch: {schedule: [1f1b], recompute: [none, full], recompute_layers: [null]}\n";
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
       "recompute: none}\n",
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

TEST(Search, StopsWhenTold) {
  const Space space = space_of(small_space(7));
  const std::atomic<bool> stop = true;
  const SearchResult result = search(space, profile_for(space.base(), ""), {.stop = &stop});
  EXPECT_FALSE(result.proven);
  EXPECT_EQ(result.gap, 1);
}

}  // namespace
}  // namespace orrery
