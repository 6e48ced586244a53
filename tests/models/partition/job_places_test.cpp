#include "models/partition/job_places.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace orrery {
namespace {

Cluster eight_nodes() {
  Cluster c = find_cluster("dgx-h100", 8);
  c.network.emplace().leaf_nodes = 4;
  c.network->leaf_uplinks = 4;
  return c;
}

TEST(Placement, ContiguousJobsHaveTheFirstNodes) { EXPECT_TRUE(places_of(eight_nodes(), 8).empty()); }

TEST(Placement, ScatteredJobsHaveANodeOfEachLeafInTurn) {
  Cluster c = eight_nodes();
  c.network->placement = Placement::scattered;
  EXPECT_EQ(places_of(c, 8), (std::vector<std::int64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(places_of(c, 16), (std::vector<std::int64_t>{0, 2, 1, 3}));  // NVLink domains of two nodes
}

TEST(Placement, RandomJobsHaveEveryNodeOnceByTheSeed) {
  Cluster c = eight_nodes();
  c.network->placement = Placement::random;
  std::vector<std::int64_t> places = places_of(c, 8);
  EXPECT_EQ(places, places_of(c, 8));
  c.network->seed = 2;
  EXPECT_NE(places, places_of(c, 8));
  std::vector<std::int64_t> all(8);
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(places);
  EXPECT_EQ(places, all);
}

TEST(Placement, OnlyFaultsOfTheJobsNodesCount) {
  Cluster c = eight_nodes();
  c.network->faults = {{.node = 5, .Gbps = 100}, {.leaf = 1, .uplinks = 2}};
  EXPECT_EQ(slowest_nic_Gbps(c, 8, {}, 32), 400);
  EXPECT_EQ(slowest_nic_Gbps(c, 8, {}, 48), 100);
  EXPECT_EQ(least_uplinks(c, 8, {}, 32), 4);
  EXPECT_EQ(least_uplinks(c, 8, {}, 40), 2);
  EXPECT_EQ(slowest_nic_Gbps(c, 8, {5, 1}, 16), 100);  // the job's first node is the cluster's sixth
  EXPECT_EQ(slowest_nic_Gbps(c, 8, {5, 1}, 8), 100);
}

TEST(Placement, AShareOfFaultsIsDrawnForEveryNic) {
  Cluster c = find_cluster("dgx-h100", 1000);
  c.network.emplace();
  c.network->fault_share = 0.001;
  c.network->fault_Gbps = 100;
  int struck = 0;
  for (int seed = 0; seed < 400; ++seed) {
    c.network->seed = seed;
    struck += slowest_nic_Gbps(c, 8, {}, 8 * 87) == 100 ? 1 : 0;  // 696 NICs
  }
  EXPECT_NEAR(struck / 400.0, 1 - std::pow(0.999, 696), 0.06);
}

}  // namespace
}  // namespace orrery
