#include "benchmarks/simgrid/link_clocks.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/benchmarks/simgrid/one_by_one.h"
#include "tests/sim/engine/random_flows.h"

namespace orrery {
namespace {

std::vector<std::uint32_t> next_ended(LinkClocks& clocks) {
  const auto ended = clocks.next();
  for (const std::uint32_t name : ended) clocks.remove(name);
  return {ended.begin(), ended.end()};
}

// Two flows that would each fill the link: half its speed each until the short one ends, then all of it.
TEST(LinkClocks, FlowsOfALinkShareItUntilTheyEnd) {
  FairShare share;
  const LinkUse use{share.add_link(100), 100};
  LinkClocks clocks(share);
  clocks.start(7, 1000 * kFullRate, {&use, 1});
  clocks.start(3, 400 * kFullRate, {&use, 1});
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{3});
  EXPECT_EQ(clocks.now(), 800);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{7});
  EXPECT_EQ(clocks.now(), 1400);
  EXPECT_TRUE(next_ended(clocks).empty());
}

TEST(LinkClocks, EqualFlowsEndAtOneTime) {
  FairShare share;
  const LinkUse use{share.add_link(100), 100};
  LinkClocks clocks(share);
  for (const std::uint32_t name : {2U, 0U, 1U}) clocks.start(name, 300 * kFullRate, {&use, 1});
  clocks.start(4, 50 * kFullRate, {}, kFullRate / 2);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{4});
  EXPECT_EQ(clocks.now(), 100);
  EXPECT_EQ(next_ended(clocks), (std::vector<std::uint32_t>{0, 1, 2}));
}

// A flow that has ended gets more to send, and comes to stand for three flows.
TEST(LinkClocks, AFlowMayHaveMoreLeftOrStandForMore) {
  FairShare share;
  const LinkUse use{share.add_link(100), 100};
  LinkClocks clocks(share);
  clocks.start(0, 1000 * kFullRate, {&use, 1});
  clocks.start(1, 300 * kFullRate, {&use, 1});
  ASSERT_EQ(clocks.next().size(), 1U);
  EXPECT_EQ(clocks.now(), 600);
  EXPECT_EQ(clocks.left(0), 700 * kFullRate);
  EXPECT_EQ(clocks.left(1), 0);
  clocks.set_left(1, 200 * kFullRate);
  clocks.resize(1, 1, 3);  // a quarter of the link each, four flows together
  ASSERT_EQ(clocks.next().front(), 1U);
  EXPECT_EQ(clocks.now(), 1400);
  EXPECT_EQ(clocks.left(0), 500 * kFullRate);
  clocks.remove(1);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{0});
  EXPECT_EQ(clocks.now(), 1900);
}

// Flows of ten and twenty seconds, which are more than 2^63 units long, beside short ones that come and go.
TEST(LinkClocks, FlowsMayTakeLong) {
  constexpr Picoseconds kSecond = 1'000'000'000'000;
  const auto length = [](Picoseconds time) { return LinkClocks::Length{time} * kFullRate; };
  FairShare share;
  const LinkUse use{share.add_link(100), 100};
  LinkClocks clocks(share);
  clocks.start(0, length(10 * kSecond), {&use, 1});
  clocks.start(1, length(20 * kSecond), {&use, 1});
  clocks.start(2, length(kSecond), {&use, 1});
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{2});
  EXPECT_NEAR(static_cast<double>(clocks.now()), 3e12, 1e6) << "rates are rounded down";
  clocks.start(3, length(30 * kSecond), {}, kFullRate / 2);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{0});
  EXPECT_NEAR(static_cast<double>(clocks.now()), 21e12, 1e7);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{1});
  EXPECT_NEAR(static_cast<double>(clocks.now()), 31e12, 1e7);
  EXPECT_EQ(next_ended(clocks), std::vector<std::uint32_t>{3});
  EXPECT_NEAR(static_cast<double>(clocks.now()), 63e12, 1e7);
}

// Random flows, each of which starts again whenever it ends, until all have run thrice: the same ends as one by one.
TEST(LinkClocks, EndFlowsWhenFollowingEachByItselfDoes) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::RandomFlows random(seed);
    if (random.kind == 2) continue;  // rates of a few units, with which flows would take too long
    FairShare share, other;
    for (const std::int64_t capacity : random.capacities) {
      share.add_link(capacity);
      other.add_link(capacity);
    }
    LinkClocks clocks(share);
    test::OneByOne expected(other);
    std::vector<int> runs(random.flows.size());
    const auto start = [&](std::uint32_t name) {
      if (++runs[name] > 3) return;
      const std::int64_t length = (1 + random.below(1000)) * 1000 * kFullRate;
      clocks.start(name, length, random.flows[name].uses, random.flows[name].limit);
      expected.start(name, length, random.flows[name]);
    };
    for (std::uint32_t name = 0; name < random.flows.size(); ++name) start(name);
    for (std::size_t ends = 0; ends < 3 * random.flows.size();) {
      const std::vector<std::uint32_t> ended = next_ended(clocks);
      ASSERT_EQ(ended, expected.next()) << "seed " << seed;
      ASSERT_EQ(clocks.now(), expected.now()) << "seed " << seed;
      for (const std::uint32_t name : ended) start(name);
      ends += ended.size();
      ASSERT_FALSE(ended.empty()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery
