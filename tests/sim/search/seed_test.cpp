#include "sim/search/seed.h"

#include <gtest/gtest.h>

#include <set>

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
  StackCosts costs;
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

// Points of the space, in the order of their bounds, that have the room that is asked for.
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

}  // namespace
}  // namespace orrery
