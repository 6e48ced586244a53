#include "models/base/narrow.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Narrow, BytesAreThoseOfCodesAndScales) {
  EXPECT_EQ(narrow_bytes({NarrowKind::int8, 100}, 1000), 1000 + 4 * 10);
  EXPECT_EQ(narrow_bytes({NarrowKind::int8, 100}, 1001), 1001 + 4 * 11);
  EXPECT_EQ(narrow_bytes({NarrowKind::int4, 64}, 129), 65 + 4 * 3);
  EXPECT_EQ(narrow_bytes({NarrowKind::int4, 64}, 0), 0);
  EXPECT_EQ(narrow_bytes({NarrowKind::nvfp4, kNvfp4Block}, 128), 64 + 8);
}

// QLoRA, section 3: 0.5 bits a weight for scales in fp32 become 8 / 64 + 32 / (64 * 256) = 0.127 bits.
TEST(Narrow, Nf4TakesTheBitsOfItsPaper) {
  const std::int64_t n = 64 * 256 * 10;
  EXPECT_DOUBLE_EQ(8.0 * static_cast<double>(narrow_bytes(kNf4Format, n)) / static_cast<double>(n),
                   4 + 8.0 / 64 + 32.0 / (64 * 256));
  EXPECT_EQ(narrow_bytes(kNf4Format, 1), 1 + 1 + 4);
  EXPECT_EQ(narrow_bytes(kNf4Format, 64 * 256 + 1), 32 * 256 + 1 + 257 + 8);
}

}  // namespace
}  // namespace orrery
