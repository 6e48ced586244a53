#include "benchmarks/simgrid/flow_bundles.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/benchmarks/simgrid/one_by_one.h"
#include "tests/random_bits.h"
#include "tests/sim/engine/random_flows.h"

namespace orrery {
namespace {

std::vector<std::uint32_t> next_ended(FlowBundles& bundles) {
  const auto ended = bundles.next();
  return {ended.begin(), ended.end()};
}

// Random flows, each of which starts again whenever it ends, until all have run six times, with links left out as soon
// as they have room: the same ends as one by one. In network 462, while links are looked at, others come to be due.
TEST(FlowBundles, EndFlowsWhenFollowingEachByItselfDoes) {
  std::size_t most_idle = 0;
  for (std::uint64_t seed = 200; seed < 500; ++seed) {
    test::RandomFlows random(seed);
    if (random.kind == 2) continue;  // rates of a few units, with which flows would take too long
    FairShare share, other;
    for (const std::int64_t capacity : random.capacities) {
      share.add_link(capacity);
      other.add_link(capacity);
    }
    FlowBundles bundles(share, static_cast<std::uint32_t>(random.capacities.size()), 1);
    test::OneByOne expected(other);
    std::vector<int> runs(random.flows.size());
    const auto start = [&](std::uint32_t name) {
      if (++runs[name] > 6) return;
      const std::int64_t length = (1 + random.below(1000)) * 1000 * kFullRate;
      bundles.start(name, length, random.flows[name].uses, random.flows[name].limit);
      expected.start(name, length, random.flows[name]);
    };
    for (std::uint32_t name = 0; name < random.flows.size(); ++name) start(name);
    for (std::size_t ends = 0; ends < 6 * random.flows.size();) {
      const std::vector<std::uint32_t> ended = next_ended(bundles);
      ASSERT_EQ(ended, expected.next()) << "seed " << seed;
      ASSERT_EQ(bundles.now(), expected.now()) << "seed " << seed;
      for (const std::uint32_t name : ended) start(name);
      ends += ended.size();
      most_idle = std::max(most_idle, bundles.idle_links());
      ASSERT_FALSE(ended.empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(most_idle, 3U);
}

// Two leaves of eight hosts, each host with a link of its own to its leaf, and half of that capacity between the
// leaves. Every host sends to each other one. When the messages within the leaves have ended, the links of the hosts
// can no longer fill; towards the end, when few messages are left, those of a host may fill its link again.
TEST(FlowBundles, LinksOfHostsAreIdleWhileThoseBetweenLeavesAreFull) {
  constexpr std::uint32_t kHosts = 16, kLeaf = 8, kLinks = 2 * kHosts + 4;
  const auto ends = [&](std::size_t least_parts) {
    FairShare share;
    for (std::uint32_t i = 0; i < 2 * kHosts; ++i) share.add_link(1000);
    for (std::uint32_t i = 0; i < 4; ++i) share.add_link(1000 * kLeaf / 2);
    FlowBundles bundles(share, kLinks, least_parts);
    for (std::uint32_t name = 0; name < kHosts * kHosts; ++name) {
      const std::uint32_t from = name / kHosts, to = name % kHosts;
      if (from == to) continue;
      std::vector<LinkUse> uses{{from, 1000}, {kHosts + to, 1000}};
      if (from / kLeaf != to / kLeaf) {
        uses.push_back({2 * kHosts + from / kLeaf, 1000});
        uses.push_back({2 * kHosts + 2 + to / kLeaf, 1000});
      }
      const auto length = static_cast<std::int64_t>(50'000 + test::random_bits(name) % 100'000);
      bundles.start(name, length * kFullRate, uses);
    }
    std::vector<std::pair<Picoseconds, std::uint32_t>> result;
    std::size_t most_idle = 0;
    for (auto ended = next_ended(bundles); !ended.empty(); ended = next_ended(bundles)) {
      for (const std::uint32_t name : ended) result.push_back({bundles.now(), name});
      most_idle = std::max(most_idle, bundles.idle_links());
    }
    return std::pair(result, most_idle);
  };
  const auto [expected, none] = ends(1000);
  const auto [result, most_idle] = ends(4);
  EXPECT_EQ(none, 0U);
  EXPECT_GT(most_idle, kHosts);
  EXPECT_EQ(expected.size(), kHosts * (kHosts - 1));
  EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace orrery
