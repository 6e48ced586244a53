#include "sim/cost/site_links.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Three sites in a row: what 0 sends to 2 takes both links.
TEST(SiteLinks, LieOnTheWaysOfSomePairs) {
  Network n;
  n.site_sizes = {4, 2, 1};
  n.site_links = {{.from = 1, .to = 0, .Gbps = 1, .ms = 1}, {.from = 1, .to = 2, .Gbps = 1, .ms = 1}};
  const SiteLinkUse first(n, 0), second(n, 1);
  EXPECT_EQ(first.way(0, 2), 2) << "from its second site to its first";
  EXPECT_EQ(second.way(0, 2), 1);
  EXPECT_EQ(first.way(1, 0), 1);
  EXPECT_EQ(first.way(1, 2), 0);
  EXPECT_EQ(first.way(0, 0), 0);
  EXPECT_EQ(first.nodes(), 2);
  EXPECT_EQ(second.nodes(), 1);
  EXPECT_EQ(second.site_of(5), 1);
}

}  // namespace
}  // namespace orrery
