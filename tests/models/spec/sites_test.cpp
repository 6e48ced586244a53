#include "models/spec/sites.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Site 1 lies between 0 and 2; a direct link of 0 and 2 is slower than this way, and site 3 is joined to nothing.
Network four_sites() {
  Network n;
  n.site_sizes = {4, 2, 3, 1};
  n.site_links = {{.from = 0, .to = 1, .Gbps = 400, .ms = 2},
                  {.from = 2, .to = 1, .Gbps = 100, .ms = 3},
                  {.from = 0, .to = 2, .Gbps = 100, .ms = 6}};
  return n;
}

TEST(Sites, HaveNodesInTheirOrder) {
  const Network n = four_sites();
  EXPECT_TRUE(has_sites(n));
  EXPECT_FALSE(has_sites(Network{}));
  const std::vector<std::int64_t> sites = {0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3};
  for (std::size_t node = 0; node < sites.size(); ++node)
    EXPECT_EQ(site_of(n, static_cast<std::int64_t>(node)), sites[node]) << node;
  EXPECT_EQ(site_of(Network{}, 7), 0);
  Network even;
  even.site_nodes = 3;
  EXPECT_EQ(site_of(even, 7), 2);
}

TEST(Sites, AreJoinedByTheWayWithTheLeastTime) {
  const Network n = four_sites();
  EXPECT_EQ(way_between_sites(n, 0, 2), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(way_between_sites(n, 2, 0), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(way_between_sites(n, 1, 1), std::vector<std::size_t>{});
  EXPECT_EQ(way_between_sites(n, 0, 3), std::vector<std::size_t>{});
  Network as_far = n;
  as_far.site_links[2].ms = 5;
  EXPECT_EQ(way_between_sites(as_far, 0, 2), std::vector<std::size_t>{2}) << "fewer links at the same time";
}

}  // namespace
}  // namespace orrery
