#include "kernels/cuda/norm.h"

#include "kernels/reference/norm.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Norm = OnDevice;

constexpr double kEpsilon = 0x1p-17;  // near 1e-5, and the same as float

struct NormCase {
  NormCase(Type type, Type of_weight, const MatrixShape& s)
      : x(type, s.rows, s.columns, s.gap, 1),
        dy(type, s.rows, s.columns, s.gap, 2),
        y(type, s.rows, s.columns, s.gap, 3),
        weight(of_weight, 1, s.columns, 0, 4),
        bias(of_weight, 1, s.columns, 0, 5),
        dweight(of_weight, 1, s.columns, 0, 6),
        dbias(of_weight, 1, s.columns, 0, 7),
        statistics(8 * s.rows),
        workspace(norm_gradient_workspace(s.rows, s.columns)) {}
  NormStatistics saved() const { return {statistics.as<float>(), statistics.as<float>() + x.rows}; }

  // Forward, then backward in place of dy.
  void run(bool layer) {
    const Heads in = one_head(x.view()), slope = one_head(dy.view());
    if (layer) {
      layer_norm(in, weight.array(), bias.array(), kEpsilon, one_head(y.view()), saved(), nullptr);
      layer_norm_gradient(in, saved(), slope, weight.array(), slope, dweight.array(), dbias.array(),
                          workspace.workspace(), nullptr);
    } else {
      rms_norm(in, weight.array(), kEpsilon, one_head(y.view()), saved(), nullptr);
      rms_norm_gradient(in, saved(), slope, weight.array(), slope, dweight.array(), workspace.workspace(), nullptr);
    }
    reference::norm<double>(x.reference(), weight.doubles.data(), layer ? bias.doubles.data() : nullptr, kEpsilon,
                            y.reference());
    reference::norm_gradient<double>(x.reference(), dy.reference(), weight.doubles.data(), kEpsilon, dy.reference(),
                                     dweight.doubles.data(), layer ? dbias.doubles.data() : nullptr);
  }

  Operand x, dy, y, weight, bias, dweight, dbias;
  Memory statistics, workspace;
};

TEST_F(Norm, MatchesItsReference) {
  for (const bool layer : {false, true}) {
    for (const Type type : kTypes) {
      for (const Type of_weight : {Type::fp32, type}) {
        for (const MatrixShape& shape : kShapes) {
          if (shape.columns == 1) continue;  // the gradient is rounding noise around zero
          SCOPED_TRACE((layer ? "layer " : "rms ") + name_of(type, shape));
          NormCase c(type, of_weight, shape);
          c.run(layer);
          EXPECT_LT(c.y.error(), error_of(type));
          EXPECT_LT(c.dy.error(), error_of(type));
          EXPECT_LT(c.dweight.error(), error_of(of_weight));
          EXPECT_LT(c.dbias.error(), error_of(of_weight));
        }
      }
    }
  }
}

TEST_F(Norm, ManyRowsAddToTheWeightsGradient) {
  for (const std::int64_t columns : {8, 1032}) {
    NormCase c(Type::bf16, Type::fp32, {columns == 8 ? 5000 : 700, columns, 0});
    c.run(true);
    EXPECT_LT(c.dweight.error(), 2 * kFloatError);  // a sum of thousands of terms
    EXPECT_LT(c.dbias.error(), 2 * kFloatError);
  }
}

// Every head of a packed buffer at once, statistics head by head.
TEST_F(Norm, HeadsShareAWeight) {
  const std::int64_t tokens = 9, heads = 3, d = 64;
  for (const Type type : kTypes) {
    Operand x(type, tokens, (heads + 2) * d, 0, 1), y(type, tokens, (heads + 2) * d, 0, 2), weight(type, 1, d, 0, 3);
    const Memory statistics(4 * tokens * heads);
    rms_norm(heads_of(x.view(), 1, 1, heads, d), weight.array(), kEpsilon, heads_of(y.view(), 1, 1, heads, d),
             {statistics.as<float>()}, nullptr);
    const std::vector<float> reciprocal = statistics.read<float>();
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto in = columns_of(x.reference(), (1 + h) * d, d), out = columns_of(y.reference(), (1 + h) * d, d);
      reference::norm<double>(in, weight.doubles.data(), nullptr, kEpsilon, out);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const double want = reference::row_statistics<double>(in.row(t), d, kEpsilon, false).reciprocal;
        EXPECT_NEAR(reciprocal[h * tokens + t], want, 1e-5 * want);
      }
    }
    EXPECT_LT(y.error(), error_of(type));
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
