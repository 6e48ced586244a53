#include "kernels/cpu/residual.h"

#include <numeric>

#include <gtest/gtest.h>

#include "kernels/reference/residual.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

using Mask = std::vector<std::uint8_t>;

Mask mask_of(const Dropout& dropout, std::int64_t rows, std::int64_t columns) {
  Mask mask(rows * columns);
  dropout_mask(dropout, rows, columns, mask.data());
  return mask;
}

TEST(Residual, MatchesItsReference) {
  for (const MatrixShape& s : kMatrixShapes) {
    const Operand base(s.rows, s.columns, s.gap, 1), x(s.rows, s.columns, s.gap, 2), bias(1, s.columns, 0, 3);
    const std::uint64_t stride = s.columns;
    const Dropout dropout = {0.25, {7, 1, 2, 3}, {5, stride, 1000 * stride, 4}};
    const Mask mask = mask_of(dropout, s.rows, s.columns);
    Operand y(s.rows, s.columns, s.gap, 4), dx(s.rows, s.columns, s.gap, 5);
    residual(base.view, x.view, bias.values.data(), 0.25, mask.data(), y.view);
    reference::residual<double>(base.reference, x.reference, bias.doubles.data(), dropout, y.reference);
    EXPECT_LT(y.error(), kFloatError);
    dropout_gradient(x.view, 0.25, mask.data(), dx.view);
    reference::dropout_gradient<double>(x.reference, dropout, dx.reference);
    EXPECT_LT(dx.error(), kFloatError);
    residual({}, x.view, nullptr, 0.25, mask.data(), y.view);
    reference::residual<double>({}, x.reference, nullptr, dropout, y.reference);
    EXPECT_LT(y.error(), kFloatError);
    residual(base.view, x.view, bias.values.data(), 0, nullptr, y.view);
    reference::residual<double>(base.reference, x.reference, bias.doubles.data(), {}, y.reference);
    EXPECT_LT(y.error(), kFloatError);
  }
}

TEST(Residual, ReferenceGradientIsTheDerivative) {
  const Dropout dropout = {0.5, {1, 2, 3, 4}, {0, 6, 0, 100}};
  const std::vector<double> x = wide(random_floats(24, 1)), dy = wide(random_floats(24, 2));
  std::vector<double> dx(24);
  reference::dropout_gradient<double>(seen(dy, 6), dropout, seen(dx, 6));
  const auto forward = [&](const std::vector<double>& v) {
    std::vector<double> y(24);
    reference::residual<double>({}, seen(v, 6), nullptr, dropout, seen(y, 6));
    return y;
  };
  EXPECT_LT(relative_error(dx, finite_differences(x, dy, forward)), kDifferenceError);
}

TEST(Dropout, DropsItsShareAndNothingWithProbabilityZero) {
  const std::int64_t n = 1 << 18;
  for (const double probability : {0.0, 0.1, 0.5, 0.9}) {
    const Mask mask = mask_of({probability, {3, 0, 0, 0}, {0, 512, 0, n}}, n / 512, 512);
    const double dropped = 1 - std::accumulate(mask.begin(), mask.end(), 0.0) / static_cast<double>(n);
    EXPECT_NEAR(dropped, probability, 5 * std::sqrt(probability * (1 - probability) / static_cast<double>(n)));
  }
}

TEST(Dropout, DiffersBetweenStreams) {
  const ElementIndex index = {0, 64, 0, 100};
  const Mask mask = mask_of({0.5, {1, 1, 1, 1}, index}, 8, 64);
  for (const DropoutStream& other :
       {DropoutStream{2, 1, 1, 1}, DropoutStream{1, 2, 1, 1}, DropoutStream{1, 1, 2, 1}, DropoutStream{1, 1, 1, 2}}) {
    EXPECT_NE(mask_of({0.5, other, index}, 8, 64), mask);
  }
}

// A rank's part of a tensor (samples 4, sequence 6, columns 10), cut in each of the possible ways, gets its part of the
// whole dropout mask.
TEST(Dropout, APartDrawsWhatTheWholeDraws) {
  const std::int64_t samples = 4, sequence = 6, columns = 10;
  const DropoutStream stream = {9, 8, 7, 6};
  const Mask whole = mask_of({0.5, stream, {0, 10, 60, sequence}}, samples * sequence, columns);
  const auto expect_part = [&](const ElementIndex& index, std::int64_t rows, std::int64_t width) {
    const Mask part = mask_of({0.5, stream, index}, rows, width);
    for (std::int64_t i = 0; i < rows * width; ++i) EXPECT_EQ(part[i], whole[index.of_row(i / width) + i % width]);
  };
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    expect_part({rank * 2 * 60, 10, 60, sequence}, 2 * sequence, columns);       // data: samples
    expect_part({rank * 3 * 10, 10, 60, 3}, samples * 3, columns);               // context: a half of every sequence
    expect_part({rank * 12 * 10, 10, 60, sequence}, 12, columns);                // sequence parallel: half of the rows
    expect_part({rank * 5, 10, 60, sequence}, samples * sequence, columns / 2);  // columns
  }
}

}  // namespace
}  // namespace orrery::kernels
