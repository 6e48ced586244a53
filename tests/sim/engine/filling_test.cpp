#include "sim/engine/filling.h"

#include <gtest/gtest.h>

#include "tests/sim/engine/random_flows.h"

namespace orrery {
namespace {

TEST(Filling, FillsOnlyTheRegionsOfWhatWasTouched) {
  FlowTable table = test::table_of({100, 100});
  Filling filling(table);
  const LinkUse first{0, 100}, second{1, 100};
  std::vector<FlowId> flows;
  for (int i = 0; i < 2; ++i) flows.push_back(table.attach({&first, 1}, kFullRate).id);
  for (int i = 0; i < 3; ++i) flows.push_back(table.attach({&second, 1}, kFullRate).id);
  filling.fill_touched(std::span(flows).first(2));
  EXPECT_EQ(table.rate(flows[0]), kFullRate / 2);
  EXPECT_EQ(table.rate(flows[2]), 0);
  EXPECT_FALSE(table.flows[flows[2]].joined);
  table.touch(1);
  filling.fill_touched({});
  EXPECT_EQ(table.rate(flows[2]), kFullRate / 3);
  EXPECT_EQ(table.links[1].level, kFullRate / 3);
  EXPECT_EQ(table.links[1].held, 300);
  EXPECT_TRUE(table.touched.empty());
}

// A link's flows never use more than there is, and the sums that a link keeps are those of its flows.
TEST(Filling, KeepsSumsOfWhatLinksHold) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    test::RandomFlows random(seed);
    FlowTable table = test::table_of(random.capacities);
    std::vector<FlowId> flows;
    for (const test::RandomFlow& f : random.flows) flows.push_back(table.attach(f.uses, f.limit).id);
    Filling(table).fill_touched(flows);
    for (const FlowTable::Link& link : table.links) {
      std::int64_t held = 0, rest = 0;
      for (const FlowTable::Entry entry : link.flows) {
        const std::int64_t weight = table.flows[entry.flow].uses[entry.use].weight;
        const bool holds = table.holders[entry.flow] != FlowTable::kNobody && table.rate(entry.flow) == link.level;
        (holds ? held : rest) += holds ? weight : weight * table.rate(entry.flow);
        ASSERT_TRUE(holds || table.rate(entry.flow) <= link.below) << "seed " << seed;
        ASSERT_LE(table.rate(entry.flow), link.level) << "seed " << seed;
      }
      ASSERT_EQ(held, link.held) << "seed " << seed;
      ASSERT_EQ(rest, link.rest) << "seed " << seed;
      ASSERT_LE(rest + held * (held > 0 ? link.level : 0), link.full) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery
