#include "models/spec/stragglers.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::spec_of;

Spec slow_spec(const std::string& strategy, std::vector<Straggler> stragglers) {
  Spec spec = spec_of(test::kSmall, strategy);
  spec.cluster.stragglers = std::move(stragglers);
  return spec;
}

TEST(Stragglers, AreTheNamedRanks) {
  const Spec spec = slow_spec("data: 4, global_batch: 4", {{2, 1.5}});
  EXPECT_EQ(slowdowns(spec), (std::vector<double>{1, 1, 1.5, 1}));
  EXPECT_EQ(slowdown_of(spec, 4), 1);  // a server
}

TEST(Stragglers, AShareIsDrawnBySeed) {
  Spec spec = spec_of(test::kSmall, "data: 2000, global_batch: 2000");
  spec.cluster.straggler_share = 0.1;
  spec.cluster.straggler_slowdown = 2;
  const auto slow = [&](std::uint64_t seed) {
    spec.seed = seed;
    return slowdowns(spec);
  };
  const std::vector<double> all = slow(1);
  EXPECT_EQ(all, slow(1));
  EXPECT_NE(all, slow(2));
  EXPECT_NEAR(static_cast<double>(std::count(all.begin(), all.end(), 2)), 200, 60);
}

// The largest of 8, 100 and 1000 standard normals is 1.42, 2.51 and 3.24 in the mean (tables of order statistics).
TEST(Stragglers, TheSlowestOfManyGpusIsSlowerThanOfANode) {
  EXPECT_EQ(slowest_beyond_a_node(0.02, 1), 1);
  EXPECT_EQ(slowest_beyond_a_node(0.02, 8), 1);
  EXPECT_EQ(slowest_beyond_a_node(0, 1000), 1);
  EXPECT_NEAR(slowest_beyond_a_node(0.02, 100), (1 + 0.02 * 2.508) / (1 + 0.02 * 1.424), 1e-3);
  EXPECT_NEAR(slowest_beyond_a_node(0.02, 1000), (1 + 0.02 * 3.241) / (1 + 0.02 * 1.424), 1e-3);
}

}  // namespace
}  // namespace orrery
