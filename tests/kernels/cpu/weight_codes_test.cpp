#include "kernels/cpu/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "kernels/common/float8.h"
#include "kernels/reference/weight_codes.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kCodeRows = 6, kCodeColumns = 96;

std::vector<float> weights_like(std::uint64_t seed) {
  std::mt19937_64 words(seed);
  std::vector<float> x(kCodeRows * kCodeColumns);
  for (float& v : x) v = static_cast<float>(static_cast<double>(words() % 20001) / 10000 - 0.9) * 0.05F;
  return x;
}

std::vector<float> there_and_back(const CodedMatrix& m, const std::vector<float>& x) {
  std::vector<std::byte> stored(static_cast<std::size_t>(m.bytes()));
  quantize_matrix(m, x.data(), ranges_of(m, x.data()), stored.data());
  std::vector<float> y(x.size());
  widen_matrix(m, stored.data(), y.data());
  return y;
}

// Calls f with the weights of each group, and their indices.
template <class F>
void for_groups(const CodedMatrix& m, const F& f) {
  for (std::int64_t g = 0; g < m.groups(); ++g) {
    std::vector<std::size_t> places;
    for (std::int64_t r = 0; r < m.out; ++r) {
      for (std::int64_t c = 0; c < m.in; ++c) {
        if (m.group_of(r, c) == g) places.push_back(static_cast<std::size_t>(r * m.in + c));
      }
    }
    f(places);
  }
}

std::vector<float> picked(const std::vector<float>& x, const std::vector<std::size_t>& places) {
  std::vector<float> y;
  for (const std::size_t i : places) y.push_back(x[i]);
  return y;
}

TEST(WeightCodes, WholeNumbersAreTheNearest) {
  const std::vector<float> x = weights_like(1);
  for (const WeightCodes codes : {WeightCodes::int8, WeightCodes::int4}) {
    for (const std::int64_t group : {-1, 0, 16, 32}) {
      for (const bool zeros : {false, true}) {
        const CodedMatrix m = {codes, group, zeros, kCodeRows, kCodeColumns, 1};
        const std::vector<float> y = there_and_back(m, x);
        for_groups(m, [&](const std::vector<std::size_t>& places) {
          const bool four = codes == WeightCodes::int4;
          const std::vector<double> wanted = reference::rounded(picked(x, places), four ? 4 : 8, zeros, four);
          for (std::size_t i = 0; i < places.size(); ++i)
            EXPECT_NEAR(y[places[i]], wanted[i], 1e-6) << group << zeros << i;
        });
      }
    }
  }
}

TEST(WeightCodes, FloatsOfEightBitsAreTheNearest) {
  const std::vector<float> x = weights_like(2);
  for (const WeightCodes codes : {WeightCodes::fp8, WeightCodes::mxfp8}) {
    const CodedMatrix m = {codes, codes == WeightCodes::fp8 ? -1 : 32, false, kCodeRows, kCodeColumns, 1};
    const std::vector<float> y = there_and_back(m, x);
    for_groups(m, [&](const std::vector<std::size_t>& places) {
      float largest = 0;
      for (const std::size_t i : places) largest = std::max(largest, std::abs(x[i]));
      const float scale = codes == WeightCodes::fp8 ? largest / 448 : std::exp2(std::floor(std::log2(largest)) - 8);
      for (const std::size_t i : places) {
        const double wanted = std::clamp<double>(x[i] / scale, -448, 448);
        EXPECT_NEAR(std::abs(y[i] / scale - wanted), std::abs(reference::nearest(reference::e4m3(), wanted) - wanted),
                    1e-4);
      }
    });
  }
}

TEST(WeightCodes, BlocksOfFourBitsHaveScalesOfEight) {
  const std::vector<float> x = weights_like(3);
  const CodedMatrix m = {WeightCodes::nvfp4, 16, false, kCodeRows, kCodeColumns, 1};
  EXPECT_EQ(m.bytes(), kCodeRows * kCodeColumns / 2 + kCodeRows * kCodeColumns / 16 + 4);
  const std::vector<float> y = there_and_back(m, x);
  double whole = 0;
  for (const float v : x) whole = std::max<double>(whole, std::abs(v));
  whole /= 448 * 6;
  for_groups(m, [&](const std::vector<std::size_t>& places) {
    double largest = 0;
    for (const std::size_t i : places) largest = std::max<double>(largest, std::abs(x[i]));
    const double scale = reference::nearest(reference::e4m3(), largest / 6 / whole) * whole;
    for (const std::size_t i : places)
      EXPECT_NEAR(y[i], reference::nearest(reference::e2m1(), x[i] / scale) * scale, 1e-6);
  });
}

// The scale of a block is a power of two, and its largest weight may exceed the largest number of E2M1 by a third.
TEST(WeightCodes, BlocksOfFourBitsMayHavePowersOfTwo) {
  const std::vector<float> x = weights_like(5);
  const CodedMatrix m = {WeightCodes::mxfp4, 32, false, kCodeRows, kCodeColumns, 1};
  const std::vector<float> y = there_and_back(m, x);
  for_groups(m, [&](const std::vector<std::size_t>& places) {
    float largest = 0;
    for (const std::size_t i : places) largest = std::max(largest, std::abs(x[i]));
    const float scale = std::exp2(std::floor(std::log2(largest)) - 2);
    for (const std::size_t i : places) {
      const double wanted = std::clamp<double>(x[i] / scale, -6, 6);
      EXPECT_NEAR(std::abs(y[i] / scale - wanted), std::abs(reference::nearest(reference::e2m1(), wanted) - wanted),
                  1e-4);
    }
  });
}

TEST(WeightCodes, EveryNumberOfAFormatStaysAsItIs) {
  for (const double x : reference::e4m3()) EXPECT_EQ(from_e4m3(to_e4m3(static_cast<float>(x))), x);
  for (const double x : reference::e2m1()) EXPECT_EQ(from_e2m1(to_e2m1(static_cast<float>(x))), x);
  EXPECT_EQ(from_e4m3(to_e4m3(1e6F)), 448);
  EXPECT_TRUE(std::isnan(from_e4m3(to_e4m3(NAN))));
  for (double x = -500; x < 500; x += 0.37) {
    const double clamped = std::clamp(x, -448.0, 448.0), y = from_e4m3(to_e4m3(static_cast<float>(x)));
    EXPECT_NEAR(std::abs(y - clamped), std::abs(reference::nearest(reference::e4m3(), clamped) - clamped), 1e-4) << x;
  }
}

TEST(WeightCodes, RoundingIsStoringAndReading) {
  const std::vector<float> x = weights_like(4);
  for (const WeightCodes codes : {WeightCodes::int8, WeightCodes::int4, WeightCodes::fp8}) {
    const CodedMatrix m = {codes, 24, false, kCodeRows, kCodeColumns, 1};
    std::vector<float> y(x.size());
    round_matrix(m, x.data(), y.data());
    const std::vector<float> stored = there_and_back(m, x);
    // A scale of int4 that is stored is rounded to fp16, which may bring a weight to the next code.
    int others = 0;
    for (std::size_t i = 0; i < x.size(); ++i) others += std::abs(y[i] - stored[i]) > 1e-3F * std::abs(y[i]) ? 1 : 0;
    EXPECT_LE(others, codes == WeightCodes::int4 ? 2 : 0);
  }
}

// A number that has diverged stays none: no code stands for it.
TEST(WeightCodes, WhatIsNoNumberStaysNone) {
  std::vector<float> x = weights_like(5), y(x.size());
  x[7] = std::nanf("");
  round_matrix({.codes = WeightCodes::int8, .group = 16, .out = kCodeRows, .in = kCodeColumns}, x.data(), y.data());
  EXPECT_TRUE(std::isnan(y[7]));
  EXPECT_FALSE(std::isnan(y[6]));
  std::vector<std::byte> stored(static_cast<std::size_t>(vector_bytes(8, kCodeColumns)));
  quantize_vector(8, kCodeColumns, x.data(), stored.data());
  widen_vector(8, kCodeColumns, stored.data(), y.data());
  EXPECT_TRUE(std::isnan(y[7]));
}

TEST(WeightCodes, VectorsOfTheCacheAreWithinHalfAStep) {
  const std::vector<float> x = weights_like(5);
  for (const int bits : {8, 4}) {
    std::vector<std::byte> stored(static_cast<std::size_t>(vector_bytes(bits, kCodeColumns)));
    EXPECT_EQ(stored.size(), static_cast<std::size_t>(kCodeColumns * bits / 8 + 4));
    std::vector<float> y(kCodeColumns);
    quantize_vector(bits, kCodeColumns, x.data(), stored.data());
    widen_vector(bits, kCodeColumns, stored.data(), y.data());
    const auto [least, largest] = std::minmax_element(x.begin(), x.begin() + kCodeColumns);
    const float step = (*largest - *least) / static_cast<float>((1 << bits) - 1);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], x[i], 0.52F * step + 1e-4F);
    quantize_vector(bits, kCodeColumns, y.data(), stored.data());  // equal numbers have a step of 0
    std::vector<float> same(kCodeColumns, 0.25F);
    quantize_vector(bits, kCodeColumns, same.data(), stored.data());
    widen_vector(bits, kCodeColumns, stored.data(), y.data());
    EXPECT_EQ(y, same);
  }
}

std::vector<float> normal_numbers(std::size_t n, float deviation) {
  std::mt19937_64 words(11);
  std::vector<float> x(n);
  for (float& v : x) {
    const double u = (static_cast<double>(words() >> 11) + 0.5) * 0x1p-53,
                 w = static_cast<double>(words() >> 11) * 0x1p-53;
    v = deviation * static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * w));
  }
  return x;
}

// As many levels as bins change nothing.
TEST(Calibrate, EveryBinMayKeepItsCount) {
  const std::vector<double> histogram = {5, 3, 0, 2, 1, 0, 0, 4};
  EXPECT_DOUBLE_EQ(clipped_divergence(histogram, 8, 8), 0);
  EXPECT_GT(clipped_divergence(histogram, 8, 4), 0);
  // P = (5, 3, 7) / 15, Q = (5, 3, 0) / 8: what was clipped fills a bin that Q has nothing in.
  EXPECT_TRUE(std::isinf(clipped_divergence(histogram, 3, 3)));
}

// Two levels of two bins: P = (1, 3, 2, 2) / 8, Q = (2, 2, 2, 2) / 8.
TEST(Calibrate, DivergenceIsThatOfTheHistograms) {
  EXPECT_DOUBLE_EQ(clipped_divergence({1, 3, 2, 2}, 4, 2), 1.0 / 8 * std::log(0.5) + 3.0 / 8 * std::log(1.5));
}

// A few numbers far out are clipped; the threshold is the least of all by its definition.
TEST(Calibrate, ClipsWhatLiesFarOut) {
  std::vector<float> x = normal_numbers(100'000, 1);
  x.push_back(40);
  const float clipped = least_divergence(x, 8);
  EXPECT_LT(clipped, 10);
  EXPECT_GT(clipped, 2);
  const float scale = 3;
  std::vector<float> scaled = x;
  for (float& v : scaled) v *= scale;
  EXPECT_NEAR(least_divergence(scaled, 8), scale * clipped, 0.05F * scale);
}

TEST(Calibrate, FewNumbersKeepTheirRange) {
  EXPECT_EQ(least_divergence({0.5F, -2, 1}, 8), 2);
  EXPECT_EQ(least_divergence(std::vector<float>(5000), 8), 0);
}

// 16 numbers share a scale by which the largest is 6: numbers of E2M1 times a scale that E4M3 has come back as they
// are, others within a quarter of the largest step of E2M1, from 4 to 6, and the rounding of the scale.
TEST(WeightCodes, VectorsInNvfp4ShareAScaleOfSixteen) {
  constexpr std::int64_t kNumbers = 40;
  std::vector<float> x(kNumbers), y(kNumbers);
  std::vector<std::byte> stored(kNumbers / 2 + 3);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = (i < 16 ? 0.5F : 8.0F) * (i % 3 == 0 ? 6.0F : i % 3 == 1 ? -1.5F : 0);
  quantize_nvfp4(kNumbers, x.data(), stored.data());
  widen_nvfp4(kNumbers, stored.data(), y.data());
  EXPECT_EQ(x, y);
  const std::vector<float> any = weights_like(5);
  quantize_nvfp4(kNumbers, any.data(), stored.data());
  widen_nvfp4(kNumbers, stored.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto* first = any.data() + i / 16 * 16;
    const float largest = std::abs(*std::max_element(first, std::min(first + 16, any.data() + kNumbers),
                                                     [](float a, float b) { return std::abs(a) < std::abs(b); }));
    EXPECT_NEAR(y[i], any[i], largest * (1.0F / 6 + 1.0F / 16)) << i;
  }
  x[3] = std::numeric_limits<float>::quiet_NaN();
  quantize_nvfp4(kNumbers, x.data(), stored.data());
  widen_nvfp4(kNumbers, stored.data(), y.data());
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[20], x[20]);
}

}  // namespace
}  // namespace orrery::kernels
