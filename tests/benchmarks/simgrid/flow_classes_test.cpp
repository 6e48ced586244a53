#include "benchmarks/simgrid/flow_classes.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "benchmarks/simgrid/link_clocks.h"
#include "benchmarks/simgrid/play.h"
#include "tests/random_bits.h"

namespace orrery::flows {
namespace {

// The ends of a set's flows when each chain is played by itself over the links of its own routes.
std::vector<double> ends_of_all(const FlowSet& set) {
  constexpr std::int64_t kCapacity = 1 << 20;
  FairShare share;
  for (std::uint32_t i = 0; i < set.links; ++i) share.add_link(kCapacity);
  LinkClocks clocks(share);
  std::vector<std::uint32_t> next(set.chains.begin(), set.chains.end() - 1);
  std::vector<double> ends(set.flows.size());
  const auto start = [&](std::uint32_t chain) {
    const Flow& flow = set.flows[next[chain]];
    std::vector<LinkUse> uses;
    for (const std::uint32_t link : set.routes[flow.route].links) uses.push_back({link, kCapacity});
    clocks.start(chain, LinkClocks::Length{flow.bytes * kPicosecondsPerByte} * kFullRate, uses);
  };
  for (std::uint32_t chain = 0; chain < set.chain_count(); ++chain) start(chain);
  while (true) {
    const auto names = clocks.next();
    if (names.empty()) return ends;
    const std::vector<std::uint32_t> ended(names.begin(), names.end());
    for (const std::uint32_t chain : ended) {
      clocks.remove(chain);
      ends[next[chain]] = static_cast<double>(clocks.now()) * 1e-12;
      if (++next[chain] < set.chains[chain + 1]) start(chain);
    }
  }
}

std::vector<double> ends_of_classes(const FlowSet& set) {
  std::vector<double> ends(set.flows.size());
  play_fair_share(set, ends);
  return ends;
}

TEST(FlowClasses, AllChainsOfARingAreOne) {
  const FlowSet set = ring(24, 5);
  EXPECT_EQ(FlowClasses(set).count(), 1U);
  EXPECT_EQ(FlowClasses(set).links(), 1U);  // those out of hosts and into them are alike
  EXPECT_EQ(ends_of_classes(set), ends_of_all(set));
}

TEST(FlowClasses, AnEvenAllToAllHasThoseWithinALeafAndThoseBetweenLeaves) {
  const FlowSet set = all_to_all(96, false);
  EXPECT_EQ(FlowClasses(set).count(), 2U);
  EXPECT_EQ(ends_of_classes(set), ends_of_all(set));
}

TEST(FlowClasses, OneLongerMessageTellsApartWhatItCanSlow) {
  FlowSet set = all_to_all(48, false);
  set.flows[0].bytes *= 2;
  // from host 0 to 1; from 0; to 1; the others: each within the leaf of the two, out of it, into it, and within the
  // other
  EXPECT_GT(FlowClasses(set).count(), 4U);
  EXPECT_LT(FlowClasses(set).count(), 48U);
  EXPECT_EQ(ends_of_classes(set), ends_of_all(set));
}

TEST(FlowClasses, ChainsThatAreNotAlikeKeepTheirLinks) {
  const FlowSet set = random_pairs(64, 4, true);
  const FlowClasses classes(set);
  EXPECT_EQ(classes.count(), 64U);
  EXPECT_EQ(classes.links(), set.links);
}

// Copies of a random set, each over links of its own and one link that all copies share.
FlowSet copies_of_random(std::uint64_t seed) {
  std::uint64_t drawn = seed * 1000;
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(test::random_bits(drawn++) % n); };
  const std::uint32_t copies = 2 + below(4), links = 2 + below(5), chains = 1 + below(6);
  FlowSet set;
  set.links = copies * links + 1;
  const std::uint64_t begin = drawn;
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    drawn = begin;
    for (std::uint32_t chain = 0; chain < chains; ++chain) {
      set.chains.push_back(static_cast<std::uint32_t>(set.flows.size()));
      for (std::uint32_t flows = 1 + below(3); flows > 0; --flows) {
        Route route;
        const std::uint32_t first = below(links), count = 1 + below(links);
        for (std::uint32_t i = 0; i < count; ++i) route.links.push_back(copy * links + (first + i) % links);
        if (below(2) == 0) route.links.push_back(set.links - 1);
        set.flows.push_back({static_cast<std::uint32_t>(set.routes.size()), 1000 * (1 + below(5))});
        set.routes.push_back(route);
      }
    }
  }
  set.chains.push_back(static_cast<std::uint32_t>(set.flows.size()));
  return set;
}

TEST(FlowClasses, EndAsAllChainsDo) {
  std::size_t folded = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const FlowSet set = copies_of_random(seed);
    ASSERT_EQ(ends_of_classes(set), ends_of_all(set)) << "seed " << seed;
    folded += FlowClasses(set).count() < set.chain_count();
  }
  EXPECT_EQ(folded, 300U);
}

}  // namespace
}  // namespace orrery::flows
