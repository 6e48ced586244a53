#include "sim/engine/flow_table.h"

#include <gtest/gtest.h>

#include "tests/sim/engine/random_flows.h"

namespace orrery {
namespace {

TEST(FlowTable, ListsFollowTheFlowsThatComeAndGo) {
  FlowTable table = test::table_of({100, 200});
  const LinkUse both[] = {{0, 60}, {1, 80}};
  const LinkUse second{1, 50};
  const FlowId a = table.attach(both, kFullRate).id;
  const FlowId b = table.attach({&second, 1}, kFullRate / 2).id;
  const FlowTable::Added last = table.attach(both, kFullRate);
  const FlowId c = last.id;
  EXPECT_TRUE(last.tight && last.contested);
  EXPECT_EQ(table.links[0].weight, 120);
  EXPECT_EQ(table.links[1].demand, 185 * kFullRate);
  EXPECT_TRUE(table.links[0].contested());
  EXPECT_FALSE(table.links[1].contested());
  EXPECT_FALSE(table.remove(a));
  EXPECT_EQ(table.links[1].weight, 130);
  ASSERT_EQ(table.links[1].flows.size(), 2U);
  for (const FlowId id : {b, c}) {
    for (const FlowTable::Use& use : table.flows[id].all()) EXPECT_EQ(table.links[use.link].flows[use.place].flow, id);
  }
  EXPECT_EQ(table.attach({&second, 1}, kFullRate).id, a);
}

TEST(FlowTable, AFlowThatJoinsAndLeavesLeavesNothing) {
  FlowTable table = test::table_of({100});
  table.links[0].level = kFullRate / 2;  // as if other flows had filled it
  const LinkUse use{0, 100};
  const FlowId slow = table.attach({&use, 1}, kFullRate / 4).id, fast = table.attach({&use, 1}, kFullRate).id;
  table.join(slow);
  table.join(fast);
  EXPECT_EQ(table.rate(slow), kFullRate / 4);
  EXPECT_EQ(table.rate(fast), kFullRate / 2);
  EXPECT_EQ(table.links[0].held, 100);
  EXPECT_EQ(table.links[0].rest, 100 * kFullRate / 4);
  EXPECT_EQ(table.without(table.flows[fast], 0), kFullRate);
  EXPECT_EQ(table.touched, std::vector<LinkId>{0});
  EXPECT_TRUE(table.remove(slow));
  EXPECT_TRUE(table.remove(fast));
  EXPECT_EQ(table.links[0].held, 0);
  EXPECT_EQ(table.links[0].rest, 0);
}

// A flow that changed long ago is noted in every update, also in those after the numbers of updates begin again.
TEST(FlowTable, NumbersOfUpdatesBeginAgain) {
  FlowTable table;
  table.links.emplace_back().full = 100 * kFullRate;
  const LinkUse use{0, 100};
  const FlowId flow = table.attach({&use, 1}, kFullRate).id;
  table.join(flow);
  table.begin_update();
  table.note(flow);
  table.set_level(0, kFullRate / 2);
  table.update = UINT32_MAX;
  table.begin_update();
  EXPECT_TRUE(table.changed.empty());
  table.note(flow);
  table.set_level(0, kFullRate / 4);
  EXPECT_EQ(table.changed, std::vector<FlowId>{flow});
  EXPECT_EQ(table.releveled, std::vector<LinkId>{0});
}

TEST(FlowTable, QuotientsAreWholeParts) {
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    const auto b = static_cast<std::int64_t>(test::random_bits(2 * i) >> (26 + i % 38)) + 1;
    const auto a = static_cast<std::int64_t>(test::random_bits(2 * i + 1) >> (2 + i % 40));
    for (const std::int64_t near : {a, a / b * b, a / b * b + b - 1}) {
      if (near / b < std::int64_t{1} << 50) {
        ASSERT_EQ(FlowTable::quotient(near, b), near / b) << near << " / " << b;
      }
    }
  }
}

}  // namespace
}  // namespace orrery
