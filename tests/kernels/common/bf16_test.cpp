#include "kernels/common/bf16.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace orrery::kernels {
namespace {

TEST(Bf16, EveryValueSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 x = {static_cast<std::uint16_t>(bits)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(wide))));
    } else {
      EXPECT_EQ(to_bf16(wide).bits, x.bits);
    }
  }
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_float(to_bf16(1 + 0x1p-8F)), 1.0F);             // a tie; 1 is even
  EXPECT_EQ(to_float(to_bf16(1 + 3 * 0x1p-8F)), 1 + 0x1p-6F);  // a tie; the even one lies above
  EXPECT_EQ(to_float(to_bf16(1 + 0x1p-8F + 0x1p-20F)), 1 + 0x1p-7F);
  EXPECT_EQ(to_float(to_bf16(-1 - 0x1p-8F - 0x1p-20F)), -1 - 0x1p-7F);
  EXPECT_TRUE(std::isinf(to_float(to_bf16(std::numeric_limits<float>::max()))));
}

TEST(Bf16, ANanOfAnyPayloadStaysOne) {
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0xffffffffU)))));
}

}  // namespace
}  // namespace orrery::kernels
