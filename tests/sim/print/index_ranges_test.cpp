#include "sim/print/index_ranges.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(IndexRanges, CoverEveryIndexOnceInNearlyEqualParts) {
  for (std::size_t size = 0; size < 100; ++size) {
    const auto ranges = index_ranges(size, 32);
    ASSERT_EQ(ranges.size(), std::min<std::size_t>(size, 32));
    std::size_t next = 0;
    for (const IndexRange& r : ranges) {
      EXPECT_EQ(r.begin, next);
      EXPECT_GE(r.size(), size / ranges.size());
      EXPECT_LE(r.size(), size / ranges.size() + 1);
      next = r.end;
    }
    EXPECT_EQ(next, size);
  }
}

}  // namespace
}  // namespace orrery
