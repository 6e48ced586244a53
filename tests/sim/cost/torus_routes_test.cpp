#include "sim/cost/torus_routes.h"

#include <algorithm>
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

// Pairs of an all-to-all on each link of a torus.
std::map<std::int64_t, std::int64_t> pairs_on_links(const Torus& torus) {
  const std::int64_t nodes = link_count(torus) / 2 / std::ssize(torus.shape);
  std::map<std::int64_t, std::int64_t> pairs;
  for (std::int64_t a = 0; a < nodes; ++a) {
    for (std::int64_t b = 0; b < nodes; ++b) visit_links(torus, a, b, [&](std::int64_t link) { ++pairs[link]; });
  }
  return pairs;
}

// In an all-to-all on a ring of n nodes both directions together carry the n^3 / 4 hops of all pairs (n even).
TEST(TorusRoutes, CarryTheHopsOfAllPairs) {
  for (const std::int64_t n : {2, 4, 6, 8, 12}) {
    const Torus ring{{n}, 400, true};
    std::int64_t all = 0;
    for (const auto& [link, count] : pairs_on_links(ring)) {
      EXPECT_LT(link, link_count(ring));
      all += count;
    }
    EXPECT_EQ(all, n * n * n / 4);
  }
}

// Half of n nodes send to the other half over the 2 n / k links that cut the longest axis, of k nodes, in two: n k / 8
// pairs on each, if all are used alike (bisection). No link of a shorter axis is fuller.
TEST(TorusRoutes, UseTheBisectionEvenly) {
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{4}, {8}, {12}, {4, 4}, {8, 4}, {4, 8, 2}, {8, 4, 4}, {4, 4, 16}}) {
    const Torus torus{shape, 400, true};
    std::int64_t nodes = 1, longest = 0, most = 0;
    for (const std::int64_t along : shape) {
      nodes *= along;
      longest = std::max(longest, along);
    }
    for (const auto& [link, count] : pairs_on_links(torus)) most = std::max(most, count);
    EXPECT_EQ(most, nodes * longest / 8) << shape.size();
  }
}

}  // namespace
}  // namespace orrery
