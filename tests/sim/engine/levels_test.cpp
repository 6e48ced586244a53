#include "sim/engine/levels.h"

#include <cstdlib>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/filling.h"
#include "tests/sim/engine/random_flows.h"

namespace orrery {
namespace {

constexpr std::size_t kNoBudget = std::numeric_limits<std::size_t>::max();

// Two links of 100 and three flows of weight 100: one over both links, one over each. A third flow on the first link
// slows the two flows there, and the flow of the second link gets what the long one leaves.
TEST(Levels, PassesOnWhatAFlowTakesAndLeaves) {
  FlowTable table = test::table_of({100, 100});
  Levels levels(table);
  const LinkUse both[] = {{0, 100}, {1, 100}};
  const LinkUse first{0, 100}, second{1, 100};
  const FlowId a = table.attach(both, kFullRate).id;
  const FlowId b = table.attach({&first, 1}, kFullRate).id;
  const FlowId c = table.attach({&second, 1}, kFullRate).id;
  for (const FlowId id : {a, b, c}) table.join(id);
  ASSERT_TRUE(levels.settle(kNoBudget));
  EXPECT_EQ(table.rate(a), kFullRate / 2);
  EXPECT_EQ(table.rate(c), kFullRate / 2);
  const FlowId d = table.attach({&first, 1}, kFullRate).id;
  table.join(d);
  ASSERT_TRUE(levels.settle(kNoBudget));
  EXPECT_EQ(table.rate(a), kFullRate / 3);
  EXPECT_EQ(table.rate(b), kFullRate / 3);
  EXPECT_EQ(table.rate(c), kFullRate - kFullRate / 3);
  EXPECT_EQ(table.links[1].level, kFullRate - kFullRate / 3);
  table.remove(a);
  ASSERT_TRUE(levels.settle(kNoBudget));
  EXPECT_EQ(table.rate(b), kFullRate / 2);
  EXPECT_EQ(table.rate(c), kFullRate);
  EXPECT_EQ(table.links[1].level, FlowTable::kNever);
}

TEST(Levels, GivesUpWithinItsBudgetAndSaysWhatIsLeft) {
  FlowTable table = test::table_of({100, 100});
  Levels levels(table);
  const LinkUse both[] = {{0, 100}, {1, 100}};
  const LinkUse second{1, 100};
  for (int i = 0; i < 3; ++i) table.join(table.attach(both, kFullRate).id);
  const FlowId last = table.attach({&second, 1}, kFullRate).id;
  table.join(last);
  EXPECT_FALSE(levels.settle(0));
  EXPECT_FALSE(table.touched.empty());
  Filling(table).fill_touched({});
  EXPECT_TRUE(table.touched.empty());
  EXPECT_EQ(table.rate(last), kFullRate / 4);
  EXPECT_TRUE(levels.settle(0));
}

// A flow that comes to stand for three flows gets the rates of three flows of its weights, beside another on its second
// link.
TEST(Levels, FindsTheRatesOfAFlowThatStandsForMore) {
  FlowTable table = test::table_of({1000, 100}), apart = test::table_of({1000, 100});
  Levels levels(table), others(apart);
  const LinkUse both[] = {{0, 100}, {1, 20}};
  const LinkUse second{1, 80};
  const FlowId one = table.attach(both, kFullRate).id;
  const FlowId beside = table.attach({&second, 1}, kFullRate).id;
  for (const FlowId id : {one, beside}) table.join(id);
  ASSERT_TRUE(levels.settle(kNoBudget));
  EXPECT_EQ(table.rate(one), kFullRate);
  table.resize(one, 1, 3);
  ASSERT_TRUE(levels.settle(kNoBudget));
  for (int i = 0; i < 3; ++i) apart.join(apart.attach(both, kFullRate).id);
  apart.join(apart.attach({&second, 1}, kFullRate).id);
  ASSERT_TRUE(others.settle(kNoBudget));
  EXPECT_EQ(table.rate(one), apart.rate(0));
  EXPECT_LT(table.rate(one), kFullRate);
  for (const LinkId id : {0U, 1U}) {
    EXPECT_EQ(table.links[id].level, apart.links[id].level);
    EXPECT_EQ(table.links[id].weight, apart.links[id].weight);
    EXPECT_EQ(table.links[id].held, apart.links[id].held);
    EXPECT_EQ(table.links[id].rest, apart.links[id].rest);
    test::expect_counted(table, id);
  }
  table.resize(one, 3, 1);
  ASSERT_TRUE(levels.settle(kNoBudget));
  EXPECT_EQ(table.rate(one), kFullRate);
  EXPECT_EQ(table.links[1].level, FlowTable::kNever);
}

// Random sets of flows, each changed by some flows from the one before, solved by Levels alone and filled from nothing:
// the same rates, levels and sums, to the last unit. ORRERY_FLOW_SETS in the environment asks for another number of
// sets than 100,000.
TEST(Levels, GivesTheRatesOfFillingFromNothing) {
  const char* asked = std::getenv("ORRERY_FLOW_SETS");
  const std::uint64_t sets = asked == nullptr ? 100'000 : std::stoull(asked);
  constexpr std::uint64_t kSetsOfANetwork = 50;
  for (std::uint64_t seed = 0; seed < sets / kSetsOfANetwork; ++seed) {
    test::RandomFlows random(seed);
    FlowTable table = test::table_of(random.capacities), fresh = test::table_of(random.capacities);
    Levels levels(table);
    Filling filling(fresh);
    std::vector<FlowId> in(random.flows.size(), std::numeric_limits<FlowId>::max());
    for (std::uint64_t set = 0; set < kSetsOfANetwork; ++set) {
      std::vector<FlowId> added;
      for (std::int64_t n = 1 + random.below(3); n > 0; --n) {
        const auto i = static_cast<std::size_t>(random.below(std::ssize(random.flows)));
        if (in[i] != std::numeric_limits<FlowId>::max()) {
          table.remove(in[i]);
          fresh.remove(in[i]);
          in[i] = std::numeric_limits<FlowId>::max();
        } else {
          in[i] = table.attach(random.flows[i].uses, random.flows[i].limit).id;
          ASSERT_EQ(fresh.attach(random.flows[i].uses, random.flows[i].limit).id, in[i]);
        }
      }
      for (const FlowId id : in) {
        if (id != std::numeric_limits<FlowId>::max() && !table.flows[id].joined) table.join(id);
      }
      ASSERT_TRUE(levels.settle(kNoBudget));
      for (FlowTable::Flow& flow : fresh.flows) flow.joined = false;
      for (FlowTable::Link& link : fresh.links) {
        link.level = FlowTable::kNever;
        link.rest = link.held = 0;
      }
      std::vector<FlowId> all;
      for (const FlowId id : in) {
        if (id != std::numeric_limits<FlowId>::max()) all.push_back(id);
      }
      filling.fill_touched(all);
      for (const FlowId id : all) ASSERT_EQ(table.rate(id), fresh.rate(id)) << "seed " << seed << " set " << set;
      for (LinkId l = 0; l < table.links.size(); ++l) {
        ASSERT_EQ(table.links[l].level, fresh.links[l].level) << "seed " << seed << " set " << set;
        ASSERT_EQ(table.links[l].held, fresh.links[l].held) << "seed " << seed << " set " << set;
        ASSERT_EQ(table.links[l].rest, fresh.links[l].rest) << "seed " << seed << " set " << set;
        test::expect_counted(table, l);
      }
    }
  }
}

}  // namespace
}  // namespace orrery
