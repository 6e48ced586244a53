#include "sim/search/seed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "models/spec/cluster.h"
#include "sim/predict/predict.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// The objects needed to examine a space.
struct Looked {
  explicit Looked(const test::SmallSpace& small)
      : space(test::space_of(small)),
        profile(profile_for(space.base(), "")),
        costs(space.base(), profile),
        layouts(space.layouts()) {
    caches.push_back(std::make_unique<BoundCache>(space, profile, costs));
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      SearchNode node{.layout = static_cast<std::uint32_t>(i)};
      LayoutCosts layout(*caches.front(), layouts[i]);
      node.bound.time = layout_bound(layout);
      node.value = node.bound.time;
      if (node.value > 0) nodes.push_back(node);
    }
  }

  std::vector<Likely> likely(Bytes room) {
    SearchWorkers workers(1, nullptr, nullptr);
    std::vector<Likely> sites;
    for (const SearchNode& node : one_of_each_site(layouts, nodes)) sites.push_back({node, room});
    return most_likely({space, layouts, options}, workers, caches, sites);
  }

  Space space;
  Profile profile;
  ModelCostCache costs;
  std::vector<RankLayout> layouts;
  SearchOptions options;
  std::vector<std::unique_ptr<BoundCache>> caches;
  std::vector<SearchNode> nodes;
};

TEST(SearchLook, TakesOneLayoutOfEachSiteWithItsLeastMicroBatch) {
  const Looked looked(test::small_space(104));
  std::set<SearchSite> all, seen;
  for (const SearchNode& node : looked.nodes) all.insert(site_of(looked.layouts[node.layout]));
  for (const SearchNode& node : one_of_each_site(looked.layouts, looked.nodes)) {
    const RankLayout& chosen = looked.layouts[node.layout];
    EXPECT_TRUE(seen.insert(site_of(chosen)).second);
    for (const SearchNode& other : looked.nodes) {
      const RankLayout& l = looked.layouts[other.layout];
      if (site_of(l) != site_of(chosen)) continue;
      EXPECT_GE(l.micro_batch, chosen.micro_batch);
    }
  }
  EXPECT_EQ(seen, all);
}

// The search's look at likely strategies finds some that need at most the given memory, in the order of their bounds.
TEST(SearchLook, FindsPointsWithRoom) {
  std::size_t points = 0;
  for (const std::uint64_t seed : {7, 104, 113, 120, 131}) {
    Looked looked(test::small_space(seed));
    const Bytes room = Bytes{4} << 30;
    std::int64_t last = 0;
    for (const Likely& l : looked.likely(room)) {
      EXPECT_EQ(l.node.level, SearchLevel::replayed);
      EXPECT_LE(l.node.bound.memory, room);
      EXPECT_GE(l.node.value, last);
      last = l.node.value;
      const Point point = point_at(looked.space, looked.layouts, l.node.place());
      EXPECT_EQ(point.cell, l.node.what);
      ++points;
    }
  }
  EXPECT_GT(points, 10U);
}

Space open_space(const std::string& model, std::int64_t nodes) {
  return Space(parse_open_spec("model: " + model + "\nsequence: 4096\ncluster: {node: dgx-h100, nodes: " +
                                   std::to_string(nodes) + "}\nstrategy: {global_batch: 256}\n",
                               "t.yaml"),
               8 * nodes);
}

// 8 billion weights take 6 bytes each and 12 for eight ranks: one rank holds a whole model. 70 billion do not fit on
// eight GPUs with whole weights, so every guess shards them.
TEST(SearchLook, FirstGuessesTakeAsFewRanksOfAModelAsHoldItsStates) {
  const Bytes room = find_gpu("h100-sxm").memory_bytes;
  const Space small = open_space("llama-3.1-8b", 1), large = open_space("llama-3.1-70b", 1);
  const auto layouts = small.layouts();
  const FirstGuess first = first_guesses(small, layouts, room).front();
  EXPECT_EQ(first.states, StatePlacement::whole_weights);
  EXPECT_EQ(layouts[first.layout].tensor * layouts[first.layout].pipeline * layouts[first.layout].context, 1);
  const std::vector<FirstGuess> guesses = first_guesses(large, large.layouts(), room);
  EXPECT_FALSE(guesses.empty());
  for (const FirstGuess& guess : guesses) EXPECT_NE(guess.states, StatePlacement::whole_weights);
}

// A mixture of experts on 16 GPUs has thousands of layouts, whose bounds take most of a minute: none is looked at
// before the first strategy is there.
TEST(SearchLook, AnyStrategyIsThereBeforeBoundsAre) {
  const Space space = open_space("mixtral-8x7b", 2);
  const SearchResult found = search(space, profile_for(space.base(), ""), {.top = 1, .any = true});
  ASSERT_EQ(found.best.size(), 1U);
  EXPECT_TRUE(found.best.front().report.memory.fits);
  EXPECT_EQ(found.counts.points, 0U);
  EXPECT_LE(found.counts.simulated, 3U);
}

OpenSpec experts_spec() {
  return parse_open_spec(
      "model: mixtral-8x7b\nsequence: 4096\ncluster: {node: dgx-h100, nodes: 2}\nsoftware: megatron-core\n"
      "strategy: {global_batch: 256}\n",
      "t.yaml");
}

TEST(SearchNearby, OneChoiceDiffersByAFactorOfFourAtMost) {
  const Space space(experts_spec(), 16);
  const std::vector<RankLayout> layouts = space.layouts();
  const RankLayout from{.tensor = 1, .context = 1, .pipeline = 2, .data = 8, .expert = 8, .micro_batch = 1};
  std::set<std::int64_t> pipelines, tensors, micro_batches;
  for (const SearchNode& node : nearby(layouts, from)) {
    const RankLayout& l = layouts[node.layout];
    pipelines.insert(l.pipeline);
    tensors.insert(l.tensor);
    micro_batches.insert(l.micro_batch);
    EXPECT_EQ(int{l.tensor != 1} + int{l.pipeline != 2} + int{l.context != 1} + int{l.expert != 8} +
                  int{l.micro_batch != 1} + int{l.overlap_expert},
              1)
        << "tensor " << l.tensor << " pipeline " << l.pipeline << " context " << l.context << " expert " << l.expert;
  }
  EXPECT_EQ(pipelines, (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(tensors, (std::set<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(micro_batches, (std::set<std::int64_t>{1, 2, 4}));
}

// A model with experts has thousands of RankLayouts even on 16 GPUs. Before the search bounds them all, it has gone
// from its first strategy to one that is a twentieth faster.
TEST(SearchNearby, IsBetterThanTheFirstStrategyAfterFewSimulations) {
  const Space space(experts_spec(), 16);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult first = search(space, profile, {.top = 1, .any = true});
  constexpr int kCalls = 6;  // at most eight strategies are simulated between two calls
  std::atomic<bool> stop = false;
  int calls = 0;
  const auto progress = [&](std::string_view) { stop = ++calls >= kCalls; };
  const SearchResult found = search(space, profile, {.top = 1, .stop = &stop, .progress = progress});
  ASSERT_FALSE(first.best.empty());
  ASSERT_FALSE(found.best.empty());
  EXPECT_EQ(found.counts.points, 0U);
  EXPECT_LT(found.best.front().report.step_time_s, 0.95 * first.best.front().report.step_time_s);
}

}  // namespace
}  // namespace orrery
