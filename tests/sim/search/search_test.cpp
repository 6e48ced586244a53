#include "sim/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "sim/predict/predict.h"
#include "sim/search/report.h"
#include "tests/sim/small_space.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::small_space;
using test::SmallSpace;
using test::space_of;
using test::with_peers;

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

// Processes that share a search all find the result of a single process, in the same number of steps.
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

// The result does not depend on the number of processes, even if the planner refuses points.
TEST(Search, DoesNotDependOnProcessesWhereThePlannerRefuses) {
  const SmallSpace small{
      "model: {name: small, layers: 4, hidden: 1024, heads: 8, feed_forward: 4096, vocab: 32000}\nsequence: 1024\n"
      "cluster: {node: dgx-a100, nodes: 1, stragglers: [{rank: 1, slowdown: 1.2}]}\n"
      "strategy: {global_batch: 16, micro_batch: 1, recompute: none}\n"
      "search: {tensor: [1, 2], context: [1], pipeline: [1, 2], schedule: [1f1b, chimera], sharding: [zero1], "
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
      "context: [1], sharding: [zero1, zero3, fsdp], offload: [none], offload_activations: [none]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  const SearchResult result = search(space, profile_for(space.base(), ""), {});
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.counts.simulated, 0U);
  EXPECT_GT(result.least_memory, space.base().cluster.gpu.memory_bytes);
  EXPECT_EQ(result.reason, "");
}

// If no strategy obeys the rules, the error names the line and the rule.
TEST(Search, SaysWhichRuleLeavesNothing) {
  const struct {
    const char *text, *rule;
  } cases[] = {
      {"model: gpt2\nsequence: 4096\ncluster: dgx-a100\nstrategy: {global_batch: 8}\n",
       "t.yaml:2: sequence: 4096 is longer than the model's 1024"},
      {"model: gpt2\nsequence: 1024\ncluster: dgx-2\nstrategy:\n  precision: bf16\n  global_batch: 8\n",
       "t.yaml:5: precision:"},
      {"model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, partition_activations: true, "
       "recompute: none}\nsearch: {schedule: [1f1b], context: [1], sharding: [none, zero1, fsdp], offload: [none], "
       "offload_activations: [none]}\n",  // every one of its strategies is refused by itself
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

// A search with nothing to choose simulates its strategy once, though it looks at likely strategies several times.
TEST(Search, SimulatesEachStrategyOnce) {
  const Space space(
      parse_open_spec(
          "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 8}\nsoftware: megatron-core\n"
          "strategy: {global_batch: 64, tensor: 8, pipeline: 8, virtual_stages: 1, schedule: 1f1b, context: 1, "
          "data: 1, micro_batch: 1, recompute: full, recompute_layers: 12, sharding: none, "
          "sequence_parallel: true, rank_order: tp-cp-dp-pp, overlap: {gradient_reduce: true, "
          "parameter_gather: true, tensor: false, pipeline: true}, offload: {activations: none}}\n",
          "fixed.yaml"),
      64);
  const SearchResult result = search(space, profile_for(space.base(), ""), {});
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(result.counts.simulated, 1U);
}

// Wherever a search is stopped, the optimum is within the stated distance of the best found.
TEST(Search, SaysHowFarTheOptimumMayBeWhereverItIsStopped) {
  std::size_t stopped = 0, open = 0;
  for (const std::uint64_t seed : {7, 104, 113, 120}) {
    const Space space = space_of(small_space(seed));
    const Profile profile = profile_for(space.base(), "");
    const SearchResult whole = search(space, profile, {});
    ASSERT_TRUE(whole.proven);
    if (whole.best.empty()) continue;
    const double optimum = whole.best.front().report.step_time_s;
    for (int calls = 1; calls < 1000; calls *= 2) {
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
  EXPECT_GT(stopped, 8U);
  EXPECT_GT(open, 5U);
}

// A strategy that fits is found soon though most of the fastest do not fit: the missing memory of one of them tells how
// much to save.
TEST(Search, SoonFindsOneThatFits) {
  const Space space(
      parse_open_spec(
          "model: {name: deep, layers: 256, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\n"
          "sequence: 1024\ncluster: {node: dgx-a100, nodes: 1}\n"
          "strategy: {tensor: 2, context: 1, pipeline: 2, micro_batch: 1, global_batch: 16, schedule: 1f1b}\n"
          "search: {offload: [none]}\n",
          "deep.yaml"),
      8);
  const SearchResult r = search(space, profile_for(space.base(), ""), {.most_memory = Bytes{14} << 30, .any = true});
  ASSERT_FALSE(r.best.empty());
  EXPECT_LE(r.best.front().report.memory.peak_device, Bytes{14} << 30);
  EXPECT_LT(r.counts.simulated, 20U);
}

// A search is stopped a little after its n-th line of progress, at any point of its work: it ends within a second of
// processor time, or ten times the time of a small search on a slow machine. It may have ended by then.
TEST(Search, StopsSoon) {
  const std::clock_t begin = std::clock();
  const Space tiny = space_of(small_space(7));
  ASSERT_TRUE(search(tiny, profile_for(tiny.base(), ""), {}).proven);
  const double limit = std::max(1.0, 10.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  const Space large(parse_open_spec("model: llama-3.1-405b\nsequence: 8192\ncluster: {node: dgx-h100, nodes: 2048}\n"
                                    "strategy: {global_batch: 2048}\n",
                                    "t.yaml"),
                    16384);
  const Space small(parse_open_spec("model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 32}\n"
                                    "strategy: {global_batch: 256, tensor: 8, context: 1}\n",
                                    "t.yaml"),
                    256);
  int stopped = 0;
  for (const int lines : {0, 1, 2}) {
    const Space& space = lines == 0 ? large : small;
    const Profile profile = profile_for(space.base(), "");
    std::atomic<bool> stop = false;
    std::atomic<int> left = lines;
    std::atomic<std::clock_t> told = 0;
    std::jthread user([&](const std::stop_token& ended) {
      while (left > 0 && !ended.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      told = std::clock();
      stop = true;
    });
    const SearchResult r =
        search(space, profile, {.threads = 2, .stop = &stop, .progress = [&](std::string_view) { --left; }});
    EXPECT_NE(r.stopped, r.proven) << lines;
    if (!r.stopped) continue;
    ++stopped;
    EXPECT_LT(static_cast<double>(std::clock() - told) / CLOCKS_PER_SEC, limit) << lines;
  }
  EXPECT_GT(stopped, 0);
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
