#include "kernels/cpu/quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/quantize.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

// The run begins one byte behind an aligned address, as runs in a larger buffer may.
std::vector<float> through(Codes codes, std::int64_t block, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::byte> stored(static_cast<std::size_t>(quantized_bytes(codes, block, n) + 2), std::byte{0x5a});
  quantize(codes, block, n, x.data(), stored.data() + 1);
  EXPECT_EQ(stored.front(), std::byte{0x5a});
  EXPECT_EQ(stored.back(), std::byte{0x5a});
  std::vector<float> y(x.size());
  dequantize(codes, block, n, stored.data() + 1, y.data());
  return y;
}

std::vector<float> through_nf4(const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::byte> stored(static_cast<std::size_t>(nf4_bytes(n) + 2), std::byte{0x5a});
  quantize_nf4(n, x.data(), stored.data() + 1);
  EXPECT_EQ(stored.front(), std::byte{0x5a});
  EXPECT_EQ(stored.back(), std::byte{0x5a});
  std::vector<float> y(x.size());
  dequantize_nf4(n, stored.data() + 1, y.data());
  return y;
}

struct QuantizeCase {
  Codes codes;
  std::int64_t block, n;
};
constexpr QuantizeCase kQuantizeCases[] = {{Codes::int8, 64, 64},   {Codes::int8, 64, 1000}, {Codes::int8, 7, 23},
                                           {Codes::int8, 100, 1},   {Codes::int4, 64, 640},  {Codes::int4, 64, 1001},
                                           {Codes::int4, 4096, 99}, {Codes::int4, 3, 17}};

TEST(Quantize, IsAsTheReference) {
  for (const QuantizeCase& c : kQuantizeCases) {
    const std::vector<float> x = random_floats(c.n, 5);
    EXPECT_EQ(through(c.codes, c.block, x),
              reference::quantized(x, static_cast<float>(largest_code(c.codes)), static_cast<std::size_t>(c.block)));
  }
}

// A number is off by half a scale at most, and the largest of a block is kept.
TEST(Quantize, ErrorsAreBoundedByTheScale) {
  for (const QuantizeCase& c : kQuantizeCases) {
    const std::vector<float> x = random_floats(c.n, 6), y = through(c.codes, c.block, x);
    for (std::int64_t first = 0; first < c.n; first += c.block) {
      float largest = 0, error = 0, kept = 0;
      for (std::int64_t i = first; i < std::min(first + c.block, c.n); ++i) {
        largest = std::max(largest, std::abs(x[i]));
        kept = std::max(kept, std::abs(y[i]));
        error = std::max(error, std::abs(x[i] - y[i]));
      }
      EXPECT_LE(error, largest / static_cast<float>(largest_code(c.codes)) * 0.5001F);
      EXPECT_NEAR(kept, largest, 1e-6F * largest);
    }
  }
}

TEST(Quantize, ZerosStayAndWhatIsNotFiniteIsSeen) {
  for (const Codes codes : {Codes::int8, Codes::int4}) {
    EXPECT_EQ(through(codes, 4, std::vector<float>(9)), std::vector<float>(9));
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      const std::vector<float> y = through(codes, 4, {1, 2, bad, 3, 4, 5});
      for (int i = 0; i < 4; ++i) EXPECT_FALSE(std::isfinite(y[static_cast<std::size_t>(i)])) << i;
      EXPECT_NEAR(y[5], 5, 1e-6);
    }
  }
}

// The scale of such numbers is a few times the least number that fp32 has, and is rounded to it.
TEST(Quantize, NumbersNearTheLeastKeepTheirSigns) {
  const float least = std::numeric_limits<float>::denorm_min();
  for (const Codes codes : {Codes::int8, Codes::int4}) {
    for (float most = least; most < 1000 * least; most += least) {
      const std::vector<float> y = through(codes, 4, {most, -most, 0, most});
      EXPECT_GE(y[0], 0) << most;
      EXPECT_LE(y[1], 0) << most;
      EXPECT_LE(y[0], 2 * most) << most;
    }
  }
}

TEST(Quantize, Nf4SaysWhatIsNotFinite) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> x(64 * 256 + 1, 0.5F);
    x[70] = bad;
    const std::vector<float> y = through_nf4(x);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) EXPECT_FALSE(std::isfinite(y[i])) << i;
    EXPECT_EQ(y.back(), 0.5F);
  }
}

TEST(Quantize, Nf4IsAsTheReference) {
  for (const std::int64_t n : {1, 63, 64, 65, 4096, 64 * 256 + 129, 3 * 64 * 256}) {
    const std::vector<float> x = random_floats(n, 7);
    EXPECT_EQ(through_nf4(x), reference::quantized_nf4(x)) << n;
  }
  EXPECT_EQ(through_nf4(std::vector<float>(130)), std::vector<float>(130));
}

double quantile(double probability) {  // of the normal distribution, by bisection
  double low = -10, high = 10;
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return low;
}

// QLoRA, section 3 and its code (create_normal_map): eight quantiles above zero, seven below, and zero, evenly spaced
// in probability from one half to 0.9677083, divided by the largest.
TEST(Quantize, Nf4LevelsAreQuantilesOfANormalDistribution) {
  constexpr double kOffset = 0.9677083;
  std::vector<double> levels = {0};
  for (const int steps : {8, 7}) {
    for (int i = 0; i < steps; ++i)
      levels.push_back((steps == 8 ? 1 : -1) * quantile(kOffset + (0.5 - kOffset) * i / steps));
  }
  std::sort(levels.begin(), levels.end());
  ASSERT_EQ(levels.size(), kNf4Levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_NEAR(kNf4Levels[i], levels[i] / levels.back(), 1e-6) << i;
}

}  // namespace
}  // namespace orrery::kernels
