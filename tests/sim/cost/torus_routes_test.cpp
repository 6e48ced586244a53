#include "sim/cost/torus_routes.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::vector<std::int64_t> links_between(const Torus& torus, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> links;
  visit_links(torus, from, to, [&](std::int64_t link) { links.push_back(link); });
  return links;
}

TEST(TorusRoutes, TakeTheShorterWayAlongEachAxis) {
  const Torus torus{{4, 5}, 400, true};
  EXPECT_EQ(links_between(torus, 0, 0).size(), 0U);
  EXPECT_EQ(links_between(torus, 0, 4).size(), 1U);  // over the end of the row
  EXPECT_EQ(links_between(torus, 0, 2 * 5 + 2).size(), 4U);
  EXPECT_EQ(links_between({{4, 5}, 400, false}, 0, 4).size(), 4U);
}

// In an all-to-all on a ring of n nodes (n even) a link carries n^2 / 8 + n / 4 pairs up, because those at distance
// n / 2 all go up; both directions together carry the n^3 / 4 hops of all pairs.
TEST(TorusRoutes, CarryTheHopsOfAllPairs) {
  for (const std::int64_t n : {2, 4, 8, 12}) {
    const Torus ring{{n}, 400, true};
    std::map<std::int64_t, std::int64_t> pairs;
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = 0; b < n; ++b) visit_links(ring, a, b, [&](std::int64_t link) { ++pairs[link]; });
    }
    std::int64_t all = 0, most = 0;
    for (const auto& [link, count] : pairs) {
      EXPECT_LT(link, link_count(ring));
      all += count;
      most = std::max(most, count);
    }
    EXPECT_EQ(all, n * n * n / 4);
    EXPECT_EQ(most, (n * n + 2 * n) / 8);
  }
}

}  // namespace
}  // namespace orrery
