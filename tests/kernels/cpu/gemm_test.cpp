#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include "kernels/reference/gemm.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

struct ProductShape {
  std::int64_t rows, in, out;
  std::int64_t gap = 0;  // unused elements after every row
};

const ProductShape kProductShapes[] = {{1, 1, 1}, {7, 5, 3}, {33, 65, 17, 3}, {128, 64, 96}, {61, 127, 130, 2}};

TEST(Gemm, LinearMatchesItsReferenceAndLeavesTheGapsAlone) {
  for (const ProductShape& s : kProductShapes) {
    const Operand x(s.rows, s.in, s.gap, 1), w(s.out, s.in, s.gap, 2), bias(1, s.out, 0, 3);
    Operand y(s.rows, s.out, s.gap, 4);
    linear(x.view, w.view, bias.values.data(), y.view);
    reference::linear<double>(x.reference, w.reference, bias.doubles.data(), y.reference);
    EXPECT_LT(y.error(), kFloatError) << s.rows << " " << s.in << " " << s.out;
  }
}

TEST(Gemm, LinearGradientsMatchTheirReference) {
  for (const ProductShape& s : kProductShapes) {
    const Operand x(s.rows, s.in, s.gap, 1), w(s.out, s.in, s.gap, 2), dy(s.rows, s.out, s.gap, 3);
    Operand dx(s.rows, s.in, s.gap, 4), dw(s.out, s.in, s.gap, 5);
    linear_input_gradient(dy.view, w.view, dx.view);
    reference::linear_input_gradient<double>(dy.reference, w.reference, dx.reference);
    EXPECT_LT(dx.error(), kFloatError);
    for (const bool accumulate : {true, false}) {
      linear_weight_gradient(dy.view, x.view, accumulate, dw.view);
      reference::linear_weight_gradient<double>(dy.reference, x.reference, accumulate, dw.reference);
      EXPECT_LT(dw.error(), kFloatError) << accumulate;
    }
  }
}

TEST(Gemm, LinearGradientsAreDerivatives) {
  const Operand x(5, 4, 0, 1), w(3, 4, 0, 2), dy(5, 3, 0, 3);
  std::vector<double> dx(20), dw(12);
  reference::linear_input_gradient<double>(dy.reference, w.reference, matrix(dx.data(), 5, 4));
  reference::linear_weight_gradient<double>(dy.reference, x.reference, false, matrix(dw.data(), 3, 4));
  const auto forward = [](const std::vector<double>& input, const std::vector<double>& weight) {
    std::vector<double> y(15);
    reference::linear<double>(matrix(input.data(), 5, 4), matrix(weight.data(), 3, 4), nullptr, matrix(y.data(), 5, 3));
    return y;
  };
  const auto of_x = [&](const std::vector<double>& v) { return forward(v, w.doubles); };
  const auto of_w = [&](const std::vector<double>& v) { return forward(x.doubles, v); };
  EXPECT_LT(relative_error(dx, finite_differences(x.doubles, dy.doubles, of_x)), kDifferenceError);
  EXPECT_LT(relative_error(dw, finite_differences(w.doubles, dy.doubles, of_w)), kDifferenceError);
}

TEST(Gemm, RowsOfAViewAreComputedAlone) {
  const Operand x(40, 24, 0, 1), w(16, 24, 0, 2);
  Operand whole(40, 16, 0, 3), pieces(40, 16, 0, 4);
  linear(x.view, w.view, nullptr, whole.view);
  for (std::int64_t first = 0; first < 40; first += 10) {
    linear(rows_of(x.view, first, 10), w.view, nullptr, rows_of(pieces.view, first, 10));
  }
  EXPECT_LT(relative_error(pieces.values, whole.values), kFloatError);
}

TEST(Gemm, ProductsOfHeadsMatchTheirReference) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    const std::int64_t batch = 2, rows = 13, heads = 4, d = 6;
    const Operand qkv(batch * rows, (heads + 2 * kv_heads) * d, 0, 1), dy(batch * rows, heads * d, 0, 2);
    Operand weights(batch * heads * rows, rows, 0, 3), y(batch * rows, heads * d, 0, 4);
    Operand dv(batch * rows, kv_heads * d, 0, 5);
    const auto q = heads_of(qkv.view, batch, 0, heads, d), k = heads_of(qkv.view, batch, heads, kv_heads, d);
    const auto rq = heads_of(qkv.reference, batch, 0, heads, d),
               rk = heads_of(qkv.reference, batch, heads, kv_heads, d);
    head_scores(q, k, 0.5F, weights.values.data());
    reference::head_scores<double>(rq, rk, 0.5, weights.doubles.data());
    EXPECT_LT(weights.error(), kFloatError);
    head_values(weights.values.data(), k, 0.25F, heads_of(y.view, batch, 0, heads, d));
    reference::head_values<double>(weights.doubles.data(), rk, 0.25, heads_of(y.reference, batch, 0, heads, d));
    EXPECT_LT(y.error(), kFloatError);
    head_key_gradient(weights.values.data(), heads_of(dy.view, batch, 0, heads, d), 2,
                      heads_of(dv.view, batch, 0, kv_heads, d));
    reference::head_key_gradient<double>(weights.doubles.data(), heads_of(dy.reference, batch, 0, heads, d), 2,
                                         heads_of(dv.reference, batch, 0, kv_heads, d));
    EXPECT_LT(dv.error(), kFloatError);
  }
}

}  // namespace
}  // namespace orrery::kernels
