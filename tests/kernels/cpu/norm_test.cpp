#include "kernels/cpu/norm.h"

#include <gtest/gtest.h>

#include "kernels/reference/norm.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr double kEpsilon = 0x1p-17;  // near 1e-5, and the same as float

struct NormCase {
  explicit NormCase(const MatrixShape& s)
      : x(s.rows, s.columns, s.gap, 1),
        dy(s.rows, s.columns, s.gap, 2),
        weight(1, s.columns, 0, 3),
        bias(1, s.columns, 0, 4),
        y(s.rows, s.columns, s.gap, 5),
        dx(s.rows, s.columns, s.gap, 6),
        dweight(1, s.columns, 0, 7),
        dbias(1, s.columns, 0, 8),
        reciprocal(s.rows),
        mean(s.rows) {}
  NormStatistics saved() { return {reciprocal.data(), mean.data()}; }
  void expect_agreement() const {
    EXPECT_LT(y.error(), kFloatError);
    EXPECT_LT(dx.error(), kFloatError);
    EXPECT_LT(dweight.error(), kFloatError);
    EXPECT_LT(dbias.error(), kFloatError);
  }

  Operand x, dy, weight, bias, y, dx, dweight, dbias;
  std::vector<float> reciprocal, mean;
};

TEST(Norm, RmsMatchesItsReference) {
  for (const MatrixShape& shape : kMatrixShapes) {
    NormCase c(shape);
    rms_norm(c.x.view, c.weight.values.data(), kEpsilon, c.y.view, c.saved());
    rms_norm_gradient(c.x.view, c.saved(), c.dy.view, c.weight.values.data(), c.dx.view, c.dweight.values.data());
    reference::norm<double>(c.x.reference, c.weight.doubles.data(), nullptr, kEpsilon, c.y.reference);
    reference::norm_gradient<double>(c.x.reference, c.dy.reference, c.weight.doubles.data(), kEpsilon, c.dx.reference,
                                     c.dweight.doubles.data(), nullptr);
    SCOPED_TRACE(shape.columns);
    if (shape.columns > 1) c.expect_agreement();  // with one column the gradient is rounding noise around zero
  }
}

TEST(Norm, LayerMatchesItsReference) {
  for (const MatrixShape& shape : kMatrixShapes) {
    if (shape.columns == 1) continue;
    NormCase c(shape);
    layer_norm(c.x.view, c.weight.values.data(), c.bias.values.data(), kEpsilon, c.y.view, c.saved());
    layer_norm_gradient(c.x.view, c.saved(), c.dy.view, c.weight.values.data(), c.dx.view, c.dweight.values.data(),
                        c.dbias.values.data());
    reference::norm<double>(c.x.reference, c.weight.doubles.data(), c.bias.doubles.data(), kEpsilon, c.y.reference);
    reference::norm_gradient<double>(c.x.reference, c.dy.reference, c.weight.doubles.data(), kEpsilon, c.dx.reference,
                                     c.dweight.doubles.data(), c.dbias.doubles.data());
    SCOPED_TRACE(shape.columns);
    c.expect_agreement();
  }
}

// A row split over two ranks, which add up their sums in between, gives the same norm as the whole row.
TEST(Norm, PiecesOfRowsGiveTheWhole) {
  for (const bool layer : {false, true}) {
    const std::int64_t rows = 5, columns = 12, half = columns / 2;
    NormCase c({rows, columns, 0});
    std::vector<float> sums(2 * rows), gradient_sums(2 * rows);
    const auto statistics = [&](std::vector<float>& of) {
      return NormStatistics{of.data(), layer ? of.data() + rows : nullptr};
    };
    const auto piece = [&](const Matrix<float>& whole, std::int64_t i) { return columns_of(whole, i * half, half); };
    const auto add_up = [&](std::vector<float>& all, const auto& of_piece) {
      for (std::int64_t i = 0; i < 2; ++i) {
        std::vector<float> own(2 * rows);
        of_piece(i, statistics(own));
        for (std::int64_t r = 0; r < 2 * rows; ++r) all[r] += own[r];
      }
    };
    add_up(sums, [&](std::int64_t i, NormStatistics own) { norm_sums(piece(c.x.view, i), own); });
    std::vector<float> saved;
    for (std::int64_t i = 0; i < 2; ++i) {
      saved = sums;
      norm_from_sums(piece(c.x.view, i), columns, c.weight.values.data() + i * half,
                     layer ? c.bias.values.data() + i * half : nullptr, kEpsilon, piece(c.y.view, i),
                     statistics(saved));
    }
    add_up(gradient_sums, [&](std::int64_t i, NormStatistics own) {
      norm_gradient_sums(piece(c.x.view, i), statistics(saved), piece(c.dy.view, i), c.weight.values.data() + i * half,
                         own, c.dweight.values.data() + i * half, layer ? c.dbias.values.data() + i * half : nullptr);
    });
    for (std::int64_t i = 0; i < 2; ++i)
      norm_gradient_from_sums(piece(c.x.view, i), columns, statistics(saved), piece(c.dy.view, i),
                              c.weight.values.data() + i * half, statistics(gradient_sums), piece(c.dx.view, i));
    double* bias = layer ? c.bias.doubles.data() : nullptr;
    reference::norm<double>(c.x.reference, c.weight.doubles.data(), bias, kEpsilon, c.y.reference);
    reference::norm_gradient<double>(c.x.reference, c.dy.reference, c.weight.doubles.data(), kEpsilon, c.dx.reference,
                                     c.dweight.doubles.data(), layer ? c.dbias.doubles.data() : nullptr);
    c.expect_agreement();
  }
}

TEST(Norm, ReferenceGradientsAreDerivatives) {
  for (const bool layer : {false, true}) {
    NormCase c({4, 6, 0});
    const auto with = [&](const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b) {
      std::vector<double> y(24);
      reference::norm<double>(seen(x, 6), w.data(), layer ? b.data() : nullptr, kEpsilon, seen(y, 6));
      return y;
    };
    std::vector<double> dx(24), dw(6), db(6);
    reference::norm_gradient<double>(c.x.reference, c.dy.reference, c.weight.doubles.data(), kEpsilon, seen(dx, 6),
                                     dw.data(), layer ? db.data() : nullptr);
    const auto &x = c.x.doubles, &w = c.weight.doubles, &b = c.bias.doubles, &dy = c.dy.doubles;
    const auto of_x = [&](const std::vector<double>& v) { return with(v, w, b); };
    const auto of_w = [&](const std::vector<double>& v) { return with(x, v, b); };
    const auto of_b = [&](const std::vector<double>& v) { return with(x, w, v); };
    EXPECT_LT(relative_error(dx, finite_differences(x, dy, of_x)), kDifferenceError) << layer;
    EXPECT_LT(relative_error(dw, finite_differences(w, dy, of_w)), kDifferenceError) << layer;
    if (!layer) continue;
    EXPECT_LT(relative_error(db, finite_differences(b, dy, of_b)), kDifferenceError);
  }
}

// Norms of heads: each head of a packed buffer is a view of head_dim columns; its gradient may replace dy.
TEST(Norm, HeadsOfAPackedBufferAreNormedInPlace) {
  const std::int64_t rows = 9, heads = 3, d = 8;
  Operand x(rows, heads * d, 0, 1), dy(rows, heads * d, 0, 2), weight(1, d, 0, 3), dweight(1, d, 0, 4);
  for (std::int64_t h = 0; h < heads; ++h) {
    std::vector<float> reciprocal(rows), y(rows * d);
    const auto head = columns_of(x.view, h * d, d), dhead = columns_of(dy.view, h * d, d);
    rms_norm(head, weight.values.data(), kEpsilon, matrix(y.data(), rows, d), {reciprocal.data()});
    rms_norm_gradient(head, {reciprocal.data()}, dhead, weight.values.data(), dhead, dweight.values.data());
  }
  const auto as_rows = [&](Operand& o) { return matrix(o.doubles.data(), rows * heads, d); };
  std::vector<double> dx(rows * heads * d);
  reference::norm_gradient<double>(as_rows(x), as_rows(dy), weight.doubles.data(), kEpsilon, seen(dx, d),
                                   dweight.doubles.data(), nullptr);
  EXPECT_LT(relative_error(dy.values, dx), kFloatError);
  EXPECT_LT(dweight.error(), kFloatError);
}

}  // namespace
}  // namespace orrery::kernels
