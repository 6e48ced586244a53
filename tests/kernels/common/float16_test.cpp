#include "kernels/common/float16.h"

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

TEST(Fp16, EveryValueSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Fp16 x = {static_cast<std::uint16_t>(bits)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_fp16(wide))));
    } else {
      EXPECT_EQ(to_fp16(wide).bits, x.bits);
    }
  }
}

// Between two neighbours the nearer one is taken, and half way the one whose last bit is 0; subnormal numbers too.
TEST(Fp16, RoundsToNearestAndTiesToEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(Fp16{bits}), high = to_float(Fp16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;
    const std::uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(to_fp16(middle).bits, even);
    EXPECT_EQ(to_fp16(std::nextafter(middle, low)).bits, bits);
    EXPECT_EQ(to_fp16(-std::nextafter(middle, high)).bits, 0x8000 + bits + 1);
  }
}

TEST(Fp16, LargeNumbersAreInfinite) {
  EXPECT_EQ(to_float(to_fp16(65519.996F)), 65504.0F);
  EXPECT_TRUE(std::isinf(to_float(to_fp16(65520.0F))));
  EXPECT_EQ(to_float(to_fp16(-std::numeric_limits<float>::max())), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(to_float(to_fp16(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace orrery::kernels
