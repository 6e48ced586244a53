#include "sim/cost/hashed_routes.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

// The largest number of queue pairs on an uplink, drawn.
std::int64_t drawn_load(const HashedFlows& f, std::mt19937_64& random) {
  std::int64_t most = 0;
  for (std::int64_t s = 0; s < f.switches; ++s) {
    std::vector<std::int64_t> loads(f.uplinks, 0);
    for (std::int64_t pair = 0; pair < f.flows * f.queue_pairs; ++pair) ++loads[random() % loads.size()];
    most = std::max(most, *std::ranges::max_element(loads));
  }
  return most;
}

double mean_rate(const HashedFlows& f) {
  double sum = 0;
  for (const LargestLoad& l : largest_loads(f))
    sum += l.probability * std::min(1.0, static_cast<double>(f.queue_pairs) / static_cast<double>(l.queue_pairs));
  return sum;
}

// Means over draws of the rate of the slowest of the flows hashed over 16 uplinks: the figures of a Monte Carlo run
// apart from this one.
TEST(HashedRoutes, SlowTheSlowestFlowAsDrawsDo) {
  EXPECT_NEAR(mean_rate({16, 16, 1, 1}), .3445, 1e-4);
  EXPECT_NEAR(mean_rate({16, 16, 1, 32}), .2102, 1e-4);
  EXPECT_NEAR(mean_rate({16, 16, 16, 1}), .6884, 1e-4);
  EXPECT_NEAR(mean_rate({16, 16, 16, 32}), .5553, 1e-4);
}

TEST(HashedRoutes, HaveTheDistributionOfDraws) {
  std::mt19937_64 random(7);
  for (const HashedFlows& f :
       {HashedFlows{2, 16, 1, 8}, {8, 16, 4, 4}, {32, 16, 1, 2}, {16, 32, 8, 4}, {64, 64, 16, 1}}) {
    constexpr int kDraws = 4000;
    double drawn = 0, mean = 0;
    for (int i = 0; i < kDraws; ++i) drawn += static_cast<double>(drawn_load(f, random)) / kDraws;
    double whole = 0;
    for (const LargestLoad& l : largest_loads(f)) {
      mean += l.probability * static_cast<double>(l.queue_pairs);
      whole += l.probability;
    }
    EXPECT_NEAR(whole, 1, 1e-6);
    EXPECT_NEAR(mean, drawn, .02 * drawn) << f.flows << ' ' << f.uplinks << ' ' << f.queue_pairs;
  }
}

// Shapes of large leaves, few uplinks and many queue pairs take no time.
TEST(HashedRoutes, OfLargeLeavesAreFound) {
  for (const HashedFlows& f : {HashedFlows{256, 8, 128, 64},
                               {512, 4, 128, 32},
                               {256, 256, 128, 2048},
                               {2048, 2, 128, 8},
                               {64, 64, 4, 16384},
                               {10'000'000, 1, 128, 1},
                               {10'000'000, 2, 128, 1000}}) {
    const auto mean = static_cast<double>(f.flows * f.queue_pairs) / static_cast<double>(f.uplinks);
    double whole = 0;
    for (const LargestLoad& l : largest_loads(f)) {
      whole += l.probability;
      EXPECT_GE(static_cast<double>(l.queue_pairs), mean);
    }
    EXPECT_NEAR(whole, 1, 1e-6) << f.flows << ' ' << f.uplinks;
  }
}

// The approximation for many queue pairs, against draws of the rate.
TEST(HashedRoutes, OfManyQueuePairsHaveTheRatesOfDraws) {
  std::mt19937_64 random(11);
  for (const HashedFlows& f : {HashedFlows{16, 16, 32, 8}, {32, 8, 16, 4}, {64, 64, 8, 2}}) {
    constexpr int kDraws = 1000;
    double drawn = 0;
    for (int i = 0; i < kDraws; ++i)
      drawn += static_cast<double>(f.queue_pairs) / static_cast<double>(drawn_load(f, random)) / kDraws;
    EXPECT_NEAR(mean_rate(f), std::min(1.0, drawn), .02 * drawn) << f.flows << ' ' << f.uplinks;
  }
}

TEST(HashedRoutes, SlowNothingThatFits) {
  EXPECT_DOUBLE_EQ(mean_slowdown({1, 16, 1, 1}, 1), 1);     // one flow alone
  EXPECT_DOUBLE_EQ(mean_slowdown({16, 16, 1, 1}, .05), 1);  // sixteen flows of a twentieth of an uplink
  EXPECT_NEAR(mean_slowdown({2, 2, 1, 1}, 1), 1.5, 1e-9);   // two flows meet in one of two cases
  EXPECT_NEAR(mean_slowdown({2, 2, 1, 1}, .75), 1.25, 1e-9);
}

// The mean over evenly spaced shares of all hashes is the mean over hashes.
TEST(HashedRoutes, SlowAShareOfAllHashesByAsMuch) {
  EXPECT_DOUBLE_EQ(slowdown_at({2, 2, 1, 1}, 1, .49), 1);
  EXPECT_DOUBLE_EQ(slowdown_at({2, 2, 1, 1}, 1, .51), 2);
  EXPECT_DOUBLE_EQ(slowdown_at({1, 1, 1, 1}, 3, 1), 3);
  const HashedFlows flows = {8, 16, 4, 4};
  constexpr int kShares = 10'000;
  double mean = 0;
  for (int i = 0; i < kShares; ++i) mean += slowdown_at(flows, 1.5, (i + .5) / kShares) / kShares;
  EXPECT_NEAR(mean, mean_slowdown(flows, 1.5), 1e-3);
}

// One flow takes one of two uplinks, one of which has half the rate; thrown numbers of queue pairs say the same of
// many.
TEST(HashedRoutes, MeetASlowUplinkByChance) {
  const HashedFlows one = {1, 2, 1, 1, 1, 2, .5};
  EXPECT_NEAR(mean_slowdown(one, 1), 1.5, 1e-9);
  EXPECT_DOUBLE_EQ(slowdown_at(one, 1, .4), 1);
  EXPECT_DOUBLE_EQ(slowdown_at(one, 1, .6), 2);
  const HashedFlows many = {16, 64, 4, 1, 1, 64, .25};
  std::mt19937_64 random(7);
  std::vector<double> drawn(20'000);
  for (double& slowdown : drawn) {
    std::vector<double> loads(64);
    for (int i = 0; i < 64; ++i) loads[random() % 64] += .25;
    loads[0] /= .25;
    slowdown = std::max(1.0, 1.5 * *std::max_element(loads.begin(), loads.end()));
  }
  std::sort(drawn.begin(), drawn.end());
  for (const double share : {.25, .5, .75, .95})
    EXPECT_DOUBLE_EQ(slowdown_at(many, 1.5, share), drawn[static_cast<std::size_t>(share * 20'000)]) << share;
}

// Switches without a fault keep all of their uplinks: of 16 switches one has half of them.
TEST(HashedRoutes, KnowASwitchThatLacksUplinks) {
  const HashedFlows lame = {16, 8, 4, 16, 1, 4};
  EXPECT_GT(mean_slowdown(lame, 1), mean_slowdown({16, 8, 4, 16}, 1));
  EXPECT_LT(mean_slowdown(lame, 1), mean_slowdown({16, 4, 4, 16}, 1));
  std::mt19937_64 random(7);
  double drawn = 0;
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i)
    drawn += static_cast<double>(std::max(drawn_load({16, 8, 4, 15}, random), drawn_load({16, 4, 4, 1}, random))) / 4 /
             kDraws;
  EXPECT_NEAR(mean_slowdown(lame, 1), drawn, .01 * drawn);
}

}  // namespace
}  // namespace orrery
