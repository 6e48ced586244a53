#include "sim/cost/pinned_routes.h"

#include <map>

#include <gtest/gtest.h>

namespace orrery {
namespace {

Cluster pinned_cluster(NetworkKind kind, std::int64_t uplinks) {
  Cluster c;
  c.nodes = 8;
  c.nics = 2;
  c.network.emplace();
  c.network->kind = kind;
  c.network->leaf_nodes = 2;
  c.network->leaf_uplinks = uplinks;
  c.network->leaf_Gbps = 400;
  return c;
}

std::map<std::int64_t, double> links_of(const PinnedRoutes& routes, std::int64_t from, std::int64_t to) {
  std::map<std::int64_t, double> links;
  routes.visit_links(from, to, [&](std::int64_t link, double share) { links[link] += share; });
  return links;
}

using LinkShares = std::map<std::int64_t, double>;

TEST(PinnedRoutes, TakeTheUplinkOfTheDestinationsDownlink) {
  const PinnedRoutes tree(pinned_cluster(NetworkKind::fat_tree, 4));
  EXPECT_EQ(links_of(tree, 0, 1), LinkShares{}) << "one leaf";
  EXPECT_EQ(links_of(tree, 0, 2), (LinkShares{{0, .5}, {1, .5}}));
  EXPECT_EQ(links_of(tree, 1, 4), (LinkShares{{0, .5}, {1, .5}})) << "another node with the same downlinks";
  EXPECT_EQ(links_of(tree, 2, 5), (LinkShares{{6, .5}, {7, .5}}));
  const PinnedRoutes rails(pinned_cluster(NetworkKind::rails, 2));
  EXPECT_EQ(links_of(rails, 0, 3), (LinkShares{{1, 1}}));
}

// Meta's remedy: twice as many uplinks as downlinks.
TEST(PinnedRoutes, DivideMoreUplinksAndShareFewer) {
  const PinnedRoutes twice(pinned_cluster(NetworkKind::rails, 4));
  EXPECT_EQ(links_of(twice, 0, 3), (LinkShares{{1, .5}, {3, .5}}));
  const PinnedRoutes one(pinned_cluster(NetworkKind::rails, 1));
  EXPECT_EQ(links_of(one, 0, 3), (LinkShares{{0, 1}}));
}

// Other leaves keep all of their uplinks, and a fault of the last one counts.
TEST(PinnedRoutes, NumberTheUplinksOfALeafThatWork) {
  Cluster c = pinned_cluster(NetworkKind::fat_tree, 4);
  c.network->faults = {{.leaf = 0, .Gbps = 0, .link = 2}, {.leaf = 1, .Gbps = 100, .link = 3}};
  const PinnedRoutes routes(c);
  EXPECT_EQ(links_of(routes, 0, 3), (LinkShares{{0, .5}, {2, .5}})) << "three work: the fourth downlink has the first";
  EXPECT_EQ(links_of(routes, 2, 1), (LinkShares{{6, .5}, {7, .5}}));
  EXPECT_EQ(routes.share_of_rate(7), .25);
}

TEST(PinnedRoutes, KnowSlowLinks) {
  Cluster c = pinned_cluster(NetworkKind::rails, 2);
  c.network->faults.push_back({.leaf = 1, .Gbps = 100, .link = 1});
  const PinnedRoutes routes(c);
  EXPECT_EQ(routes.link_count(), 8);
  EXPECT_EQ(routes.share_of_rate(3), .25);
  EXPECT_EQ(routes.share_of_rate(1), 1);
}

}  // namespace
}  // namespace orrery
