#include "models/base/weight_format.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr std::int64_t kMatrixOut = 4096, kMatrixIn = 11008, kMatrixWeights = kMatrixOut * kMatrixIn;

Bytes format_bytes(const WeightFormat& format) { return weight_bytes(format, kMatrixOut, kMatrixIn); }

TEST(WeightFormat, BytesAreThoseOfCodesAndScales) {
  const std::int64_t n = kMatrixWeights;
  EXPECT_EQ(format_bytes({.code = WeightCode::fp8}), n + 4);
  EXPECT_EQ(format_bytes({.code = WeightCode::int8, .group = kChannelGroup}), n + 4 * kMatrixOut);
  for (const std::int64_t g : {32, 64, 128}) {
    EXPECT_EQ(format_bytes({.code = WeightCode::int4, .group = g}), n / 2 + 2 * n / g);
    EXPECT_EQ(format_bytes({.code = WeightCode::int4, .group = g, .zeros = true}), n / 2 + 2 * n / g + n / g / 2);
  }
  EXPECT_EQ(format_bytes({.code = WeightCode::nvfp4, .group = 16}), n / 2 + n / 16 + 4);
  EXPECT_EQ(format_bytes({.code = WeightCode::mxfp8, .group = 32}), n + n / 32);
  EXPECT_EQ(format_bytes({.code = WeightCode::mxfp4, .group = 32}), n / 2 + n / 32);
}

// A matrix of several experts has a scale for each of them.
TEST(WeightFormat, EveryMatrixHasScalesOfItsOwn) {
  EXPECT_EQ(weight_bytes({.code = WeightCode::fp8}, 8 * 64, 32, 8),
            8 * weight_bytes({.code = WeightCode::fp8}, 64, 32));
  EXPECT_EQ(weight_bytes({.code = WeightCode::nvfp4, .group = 16}, 8 * 64, 32, 8), 8 * (64 * 32 / 2 + 64 * 2 + 4));
}

// SpQR (2306.03078, section 5): b_w + (b_s + b_z) / g + 64 / (g g') + 32 r bits a weight.
TEST(WeightFormat, OutliersAndQuantisedScalesTakeTheirBits) {
  const WeightFormat spqr = {
      .code = WeightCode::int3, .group = 16, .zeros = true, .outliers = 10'000, .scale_group = 16};
  const double bits = 3 + 6.0 / 16 + 64.0 / 256 + 32 * 0.01;
  const double rows = 32.0 / kMatrixIn;  // where each row's outliers begin
  EXPECT_NEAR(8.0 * static_cast<double>(format_bytes(spqr)) / static_cast<double>(kMatrixWeights), bits + rows, 1e-4);
  WeightFormat symmetric = spqr;
  symmetric.zeros = false;
  EXPECT_LT(format_bytes(symmetric), format_bytes(spqr));
}

TEST(WeightFormat, ProductsReadTheirOwnCodes) {
  EXPECT_TRUE(reads_codes({}, Precision::bf16));
  EXPECT_TRUE(reads_codes({.code = WeightCode::fp8}, Precision::fp8));
  EXPECT_TRUE(reads_codes({.code = WeightCode::int8, .group = kTensorGroup}, Precision::int8));
  EXPECT_TRUE(reads_codes({.code = WeightCode::mxfp4, .group = 32}, Precision::mxfp8));
  EXPECT_FALSE(reads_codes({.code = WeightCode::mxfp4, .group = 32}, Precision::bf16));
  EXPECT_FALSE(reads_codes({.code = WeightCode::fp8}, Precision::bf16));
  EXPECT_FALSE(reads_codes({.code = WeightCode::int4, .group = 128}, Precision::fp8));
}

TEST(WeightFormat, HasAText) {
  EXPECT_EQ(text_of(WeightFormat{}), "wide");
  EXPECT_EQ(text_of(WeightFormat{.code = WeightCode::fp8}), "fp8, a scale a matrix");
  EXPECT_EQ(text_of(WeightFormat{.code = WeightCode::int4, .group = 128, .zeros = true, .outliers = 10'000}),
            "int4, a scale for 128 weights, zero points, 1 % outliers");
}

}  // namespace
}  // namespace orrery
