#include "kernels/cpu/eight_bit.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/eight_bit.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kBlock = 256;

TEST(EightBit, HasTheValuesOfItsBits) {
  for (const MomentSign sign : {MomentSign::either, MomentSign::positive}) {
    std::vector<double> expected;
    for (int byte = 0; byte < 256; ++byte)
      expected.push_back(reference::moment_value(static_cast<std::uint8_t>(byte), sign == MomentSign::either));
    std::sort(expected.begin(), expected.end());
    const auto& values = moment_values(sign);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(values[i], static_cast<float>(expected[i])) << i;
    EXPECT_EQ(values.back(), 1);
    EXPECT_TRUE(std::binary_search(values.begin(), values.end(), 0.0F));
  }
}

TEST(EightBit, RoundsEveryBlockAsTheReference) {
  const std::int64_t n = 2 * kBlock + 37;
  for (const MomentSign sign : {MomentSign::either, MomentSign::positive}) {
    std::vector<float> x = random_floats(n, 5), back(x.size());
    // Blocks of very different sizes, whose elements spread over six powers of ten.
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] *= std::pow(10.0F, -static_cast<float>(i % 7)) * (i < kBlock ? 1.0F : 1e-9F);
      if (sign == MomentSign::positive) x[i] = std::abs(x[i]);
    }
    std::vector<std::uint8_t> bytes(x.size());
    std::vector<float> scales(3);
    narrow_moments(sign, kBlock, n, x.data(), bytes.data(), scales.data());
    widen_moments(sign, kBlock, n, bytes.data(), scales.data(), back.data());
    for (std::int64_t first = 0; first < n; first += kBlock) {
      const std::int64_t end = std::min(first + kBlock, n);
      const std::vector<double> expected =
          reference::rounded_block({x.begin() + first, x.begin() + end}, sign == MomentSign::either);
      for (std::int64_t i = first; i < end; ++i)
        EXPECT_NEAR(back[i], expected[i - first], 1e-6 * std::abs(expected[i - first])) << i;
    }
  }
}

// A rounded block is not rounded again, and a block of zeros stays zero. The largest number of the block is positive:
// the dynamic map has 1 on the positive side, and 0.993 on the negative.
TEST(EightBit, RoundingTwiceIsRoundingOnce) {
  std::vector<float> x = random_floats(kBlock, 6), once(x.size()), twice(x.size());
  x.front() = 4;
  std::vector<std::uint8_t> bytes(x.size());
  float scale = 0;
  const auto round = [&](const std::vector<float>& from, std::vector<float>& to) {
    narrow_moments(MomentSign::either, kBlock, kBlock, from.data(), bytes.data(), &scale);
    widen_moments(MomentSign::either, kBlock, kBlock, bytes.data(), &scale, to.data());
  };
  round(x, once);
  round(once, twice);
  EXPECT_EQ(once, twice);
  round(std::vector<float>(x.size()), once);
  EXPECT_EQ(once, std::vector<float>(x.size()));
}

}  // namespace
}  // namespace orrery::kernels
