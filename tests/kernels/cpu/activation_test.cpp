#include "kernels/cpu/activation.h"

#include <gtest/gtest.h>

#include "kernels/reference/activation.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

TEST(Activation, SwigluMatchesItsReference) {
  for (const MatrixShape& s : kMatrixShapes) {
    Operand x(s.rows, 2 * s.columns, s.gap, 1), y(s.rows, s.columns, s.gap, 2), dx(s.rows, 2 * s.columns, s.gap, 3);
    const Operand dy(s.rows, s.columns, s.gap, 4);
    swiglu(x.view, y.view);
    swiglu_gradient(x.view, dy.view, dx.view);
    reference::swiglu<double>(x.reference, y.reference);
    reference::swiglu_gradient<double>(x.reference, dy.reference, dx.reference);
    EXPECT_LT(y.error(), kFloatError);
    EXPECT_LT(dx.error(), kFloatError);
    swiglu_gradient(x.view, dy.view, x.view);
    EXPECT_EQ(x.values[0], dx.values[0]);
    EXPECT_EQ(x.values[s.columns], dx.values[s.columns]);
  }
}

TEST(Activation, ClampedSwigluMatchesItsReferenceAndItself) {
  constexpr float kLimit = .5F;
  for (const MatrixShape& s : kMatrixShapes) {
    Operand x(s.rows, 2 * s.columns, s.gap, 1), y(s.rows, s.columns, s.gap, 2), dx(s.rows, 2 * s.columns, s.gap, 3);
    const Operand dy(s.rows, s.columns, s.gap, 4);
    swiglu(x.view, y.view, kLimit);
    swiglu_gradient(x.view, dy.view, dx.view, kLimit);
    reference::swiglu<double>(x.reference, y.reference, kLimit);
    reference::swiglu_gradient<double>(x.reference, dy.reference, dx.reference, kLimit);
    EXPECT_LT(y.error(), kFloatError);
    EXPECT_LT(dx.error(), kFloatError);
  }
}

TEST(Activation, GatesAreBoundedAboveAndUpsOnBothSides) {
  const std::vector<float> x = {9, -9, 9, -9}, bounded = {7, -9, 7, -7}, dy = {1, 1};
  std::vector<float> y(2), of_bounded(2), dx(4);
  swiglu(matrix(x.data(), 1, 4), matrix(y.data(), 1, 2), 7);
  swiglu(matrix(bounded.data(), 1, 4), matrix(of_bounded.data(), 1, 2));
  EXPECT_EQ(y, of_bounded);
  swiglu_gradient(matrix(x.data(), 1, 4), matrix(dy.data(), 1, 2), matrix(dx.data(), 1, 4), 7);
  EXPECT_EQ(dx[0], 0);
  EXPECT_NE(dx[1], 0);
  EXPECT_EQ(dx[2], 0);
  EXPECT_EQ(dx[3], 0);
}

TEST(Activation, GeluMatchesItsReference) {
  for (const MatrixShape& s : kMatrixShapes) {
    const Operand x(s.rows, s.columns, s.gap, 1), dy(s.rows, s.columns, s.gap, 2), bias(1, s.columns, 0, 3);
    for (const bool biased : {false, true}) {
      Operand y(s.rows, s.columns, s.gap, 4), dx(s.rows, s.columns, s.gap, 5);
      gelu(x.view, biased ? bias.values.data() : nullptr, y.view);
      gelu_gradient(x.view, biased ? bias.values.data() : nullptr, dy.view, dx.view);
      reference::gelu<double>(x.reference, biased ? bias.doubles.data() : nullptr, y.reference);
      reference::gelu_gradient<double>(x.reference, biased ? bias.doubles.data() : nullptr, dy.reference, dx.reference);
      EXPECT_LT(y.error(), kFloatError);
      EXPECT_LT(dx.error(), kFloatError);
    }
  }
}

TEST(Activation, ReferenceGradientsAreDerivatives) {
  std::vector<double> x = wide(random_floats(24, 1)), dy = wide(random_floats(24, 2)), dx(24);
  for (double& v : x) v *= 3;
  const auto of_gelu = [](const std::vector<double>& v) {
    std::vector<double> y(24);
    reference::gelu<double>(seen(v, 6), nullptr, seen(y, 6));
    return y;
  };
  reference::gelu_gradient<double>(seen(x, 6), nullptr, seen(dy, 6), seen(dx, 6));
  EXPECT_LT(relative_error(dx, finite_differences(x, dy, of_gelu)), kDifferenceError);
  dy.resize(12);
  const auto of_swiglu = [](const std::vector<double>& v) {
    std::vector<double> y(12);
    reference::swiglu<double>(seen(v, 6), seen(y, 3));
    return y;
  };
  reference::swiglu_gradient<double>(seen(x, 6), seen(dy, 3), seen(dx, 6));
  EXPECT_LT(relative_error(dx, finite_differences(x, dy, of_swiglu)), kDifferenceError);
}

TEST(Activation, IsFiniteFarOut) {
  const std::vector<float> x = {-1e4F, 1e4F, 1, 1};
  std::vector<float> y(2), dy = {1, 1}, dx(4);
  swiglu(matrix(x.data(), 1, 4), matrix(y.data(), 1, 2));
  swiglu_gradient(matrix(x.data(), 1, 4), matrix<const float>(dy.data(), 1, 2), matrix(dx.data(), 1, 4));
  EXPECT_NEAR(y[0], 0, 1e-30);
  EXPECT_EQ(y[1], 1e4F);
  EXPECT_NEAR(dx[0], 0, 1e-30);
  EXPECT_EQ(dx[1], 1.0F);
}

}  // namespace
}  // namespace orrery::kernels
