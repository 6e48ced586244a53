// The table of data-parallel variants.
#include "models/sharding.h"

#include <gtest/gtest.h>

#include "models/error.h"

namespace orrery {
namespace {

// Each row shards no less than a plainer one of its family; only what is built is listed.
TEST(Sharding, RowsAreOrdered) {
  for (const ShardingRow& row : sharding_rows()) {
    EXPECT_EQ(&row_of(row.kind), &row);
    EXPECT_EQ(row.name, name_of(row.kind));
    EXPECT_TRUE(!row.shards_parameters || row.shards_gradients) << row.name;
    EXPECT_TRUE(!row.shards_gradients || row.shards_optimizer) << row.name;
    EXPECT_TRUE(!row.fp32_shards || row.shards_parameters) << row.name;
  }
}

}  // namespace
}  // namespace orrery
