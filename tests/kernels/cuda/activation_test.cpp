#include "kernels/cuda/activation.h"

#include "kernels/reference/activation.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Activation = OnDevice;

TEST_F(Activation, SwigluMatchesItsReference) {
  for (const Type type : kTypes) {
    for (const auto& [rows, columns, gap] : kShapes) {
      Operand x(type, rows, 2 * columns, 2 * gap, 1), y(type, rows, columns, gap, 2), dy(type, rows, columns, gap, 3);
      swiglu(x.view(), y.view(), 0, nullptr);
      reference::swiglu<double>(x.reference(), y.reference());
      EXPECT_LT(y.error(), error_of(type)) << name_of(type, {rows, columns, gap});
      swiglu_gradient(x.view(), dy.view(), x.view(), 0, nullptr);  // in place
      reference::swiglu_gradient<double>(x.reference(), dy.reference(), x.reference());
      EXPECT_LT(x.error(), error_of(type)) << name_of(type, {rows, columns, gap});
    }
  }
}

TEST_F(Activation, ClampedSwigluMatchesItsReference) {
  constexpr float kLimit = .5F;
  for (const Type type : kTypes) {
    for (const auto& [rows, columns, gap] : kShapes) {
      Operand x(type, rows, 2 * columns, 2 * gap, 1), y(type, rows, columns, gap, 2), dy(type, rows, columns, gap, 3);
      swiglu(x.view(), y.view(), kLimit, nullptr);
      reference::swiglu<double>(x.reference(), y.reference(), kLimit);
      EXPECT_LT(y.error(), error_of(type)) << name_of(type, {rows, columns, gap});
      swiglu_gradient(x.view(), dy.view(), x.view(), kLimit, nullptr);  // in place
      reference::swiglu_gradient<double>(x.reference(), dy.reference(), x.reference(), kLimit);
      EXPECT_LT(x.error(), error_of(type)) << name_of(type, {rows, columns, gap});
    }
  }
}

TEST_F(Activation, GeluMatchesItsReference) {
  for (const Type type : kTypes) {
    for (const auto& [rows, columns, gap] : kShapes) {
      for (const Type of_bias : kTypes) {
        Operand x(type, rows, columns, gap, 1), y(type, rows, columns, gap, 2), dy(type, rows, columns, gap, 3);
        Operand bias(of_bias, 1, columns, 0, 4);
        gelu(x.view(), bias.array(), y.view(), nullptr);
        reference::gelu<double>(x.reference(), bias.doubles.data(), y.reference());
        EXPECT_LT(y.error(), error_of(type)) << name_of(type, {rows, columns, gap});
        gelu(x.view(), {}, y.view(), nullptr);
        reference::gelu<double>(x.reference(), nullptr, y.reference());
        EXPECT_LT(y.error(), error_of(type)) << name_of(type, {rows, columns, gap});
        gelu_gradient(x.view(), bias.array(), dy.view(), x.view(), nullptr);  // in place
        reference::gelu_gradient<double>(x.reference(), bias.doubles.data(), dy.reference(), x.reference());
        EXPECT_LT(x.error(), error_of(type)) << name_of(type, {rows, columns, gap});
      }
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
