#include "sim/search/cell.h"

#include <gtest/gtest.h>

#include "models/spec/sharding.h"

namespace orrery {
namespace {

TEST(SearchCell, CopiesOfTheModelShareTheMicroBatches) {
  const RankLayout layout{.pipeline = 4, .micro_batches = 16};
  EXPECT_EQ(cell_of(layout, {.schedule = "1f1b"}).copies, 1);
  EXPECT_EQ(cell_of(layout, {.schedule = "1f1b"}).micro_batches, 16);
  EXPECT_EQ(cell_of(layout, {.schedule = "chimera"}).copies, 2);
  EXPECT_EQ(cell_of(layout, {.schedule = "chimera"}).micro_batches, 8);
}

// Shards of dense weights are cut over all replicas of both copies, experts over the replicas that hold the same ones.
TEST(SearchCell, ARankOwnsItsShare) {
  const StageWeights weights{.elements = 1001, .expert_elements = 640};
  const RankLayout layout{.pipeline = 2, .data = 8, .expert = 4, .micro_batches = 4};
  EXPECT_EQ(own_elements(cell_of(layout, {}), weights), 1641);
  MemoryPlan sharded;
  for (const ShardingRow& row : sharding_rows()) {
    if (!row.shards_optimizer || row.hybrid) continue;
    sharded.sharding = sharding_of(row);
    EXPECT_EQ(own_elements(cell_of(layout, sharded), weights), 126 + 320) << row.name;
    sharded.schedule = "chimera";
    EXPECT_EQ(own_elements(cell_of(layout, sharded), weights), 63 + 160) << row.name;
    sharded.schedule = kPlainSchedule;
  }
}

}  // namespace
}  // namespace orrery
