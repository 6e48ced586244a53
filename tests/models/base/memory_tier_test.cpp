#include "models/base/memory_tier.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(MemoryTier, WordsOfASpecNameEveryTier) {
  EXPECT_EQ(kTierWords, "none | cpu | nvme");
  for (const MemoryTierRow& row : kMemoryTiers) {
    ASSERT_TRUE(tier_in_spec(row.in_spec)) << row.name;
    EXPECT_EQ(row_of(*tier_in_spec(row.in_spec)).name, row.name);
  }
  EXPECT_FALSE(tier_in_spec("tape"));
}

TEST(MemoryTier, TiersBehindTheHostAreNumberedInOrder) {
  std::size_t next = 0;
  for (const MemoryTier tier : kTiersBeyond) {
    if (!behind_host(tier)) continue;
    EXPECT_EQ(index_behind_host(tier), next++);
  }
  EXPECT_EQ(next, kTiersBehindHost);
}

}  // namespace
}  // namespace orrery
