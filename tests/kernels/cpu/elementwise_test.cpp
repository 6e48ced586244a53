#include "kernels/cpu/elementwise.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kCount = 1003;

std::vector<Bf16> narrowed(const std::vector<float>& x) {
  std::vector<Bf16> y(x.size());
  cast(kCount, x.data(), y.data());
  return y;
}

TEST(Elementwise, AddsAndAccumulates) {
  const std::vector<float> a = random_floats(kCount, 1), b = random_floats(kCount, 2);
  std::vector<float> y(kCount), to = a;
  add(kCount, a.data(), b.data(), y.data());
  accumulate(kCount, b.data(), to.data());
  EXPECT_EQ(to, y);
  for (std::int64_t i = 0; i < kCount; ++i) EXPECT_EQ(y[i], a[i] + b[i]);
}

TEST(Elementwise, AccumulatesInFloatWhateverIsStored) {
  const std::vector<float> a = random_floats(kCount, 1);
  const std::vector<Bf16> narrow = narrowed(random_floats(kCount, 2));
  std::vector<float> to = a;
  std::vector<Bf16> narrow_to = narrowed(a), twice = narrow;
  accumulate(kCount, narrow.data(), to.data());
  accumulate(kCount, a.data(), narrow_to.data());
  accumulate(kCount, narrow.data(), twice.data());
  for (std::int64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(to[i], a[i] + to_float(narrow[i]));
    EXPECT_EQ(narrow_to[i].bits, to_bf16(to_float(to_bf16(a[i])) + a[i]).bits);
    EXPECT_EQ(to_float(twice[i]), 2 * to_float(narrow[i]));
  }
}

TEST(Elementwise, CastsThereAndBack) {
  const std::vector<float> a = random_floats(kCount, 1);
  const std::vector<Bf16> narrow = narrowed(a);
  std::vector<float> back(kCount), copy(kCount);
  cast(kCount, narrow.data(), back.data());
  cast(kCount, a.data(), copy.data());
  EXPECT_EQ(copy, a);
  for (std::int64_t i = 0; i < kCount; ++i) EXPECT_LE(std::abs(back[i] - a[i]), std::abs(a[i]) * 0x1p-8F);
}

TEST(Elementwise, Fills) {
  std::vector<float> a(kCount);
  std::vector<Bf16> b(kCount);
  fill(kCount, 1.5F, a.data());
  fill(kCount, 1.5F, b.data());
  EXPECT_EQ(a, std::vector<float>(kCount, 1.5F));
  EXPECT_EQ(to_float(b[kCount - 1]), 1.5F);
}

TEST(Elementwise, NormsOfPartsSumToTheWhole) {
  const std::vector<float> a = random_floats(kCount, 1);
  const std::vector<double> d = wide(a);
  const double whole = squared_norm(kCount, a.data());
  EXPECT_NEAR(whole, std::inner_product(d.begin(), d.end(), d.begin(), 0.0), 1e-10);
  EXPECT_NEAR(squared_norm(500, a.data()) + squared_norm(kCount - 500, a.data() + 500), whole, 1e-10);
  EXPECT_NEAR(squared_norm(kCount, narrowed(a).data()), whole, whole * 0x1p-8);
}

TEST(Elementwise, BiasGradientAddsTheSumOfRows) {
  for (const MatrixShape& s : kMatrixShapes) {
    const Operand dy(s.rows, s.columns, s.gap, 1);
    Operand dbias(1, s.columns, 0, 2);
    bias_gradient(dy.view, dbias.values.data());
    for (std::int64_t r = 0; r < s.rows; ++r) {
      for (std::int64_t c = 0; c < s.columns; ++c) dbias.doubles[c] += dy.reference.row(r)[c];
    }
    EXPECT_LT(dbias.error(), kFloatError);
  }
}

}  // namespace
}  // namespace orrery::kernels
