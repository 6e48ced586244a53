#include "kernels/cuda/residual.h"

#include "kernels/reference/residual.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Residual = OnDevice;
using Mask = std::vector<std::uint8_t>;

// Dropouts whose first element is 5 or 8, i.e. inside a block of random words or at its start.
Dropout dropout_for(const MatrixShape& s, double probability, std::uint64_t first) {
  return {probability, {7, 1, 2, 3}, {first, static_cast<std::uint64_t>(s.columns), 1ULL << 33, 4}};
}

TEST_F(Residual, MasksAreThoseOfTheCpu) {
  for (const MatrixShape& s : kShapes) {
    for (const double probability : {0.0, 0.1, 0.5}) {
      for (const std::uint64_t first : {5, 8}) {
        const Dropout dropout = dropout_for(s, probability, first);
        Mask want(s.rows * s.columns);
        kernels::dropout_mask(dropout, s.rows, s.columns, want.data());
        const Memory mask{Mask(want.size(), 2)};
        dropout_mask(dropout, s.rows, s.columns, mask.as<std::uint8_t>(), nullptr);
        EXPECT_EQ(mask.read<std::uint8_t>(), want) << s.rows << " x " << s.columns;
      }
    }
  }
}

TEST_F(Residual, MatchesItsReference) {
  for (const Type type : kTypes) {
    for (const MatrixShape& s : kShapes) {
      SCOPED_TRACE(name_of(type, s));
      const Dropout dropout = dropout_for(s, 0.25, 5);
      Operand base(type, s.rows, s.columns, s.gap, 1), x(type, s.rows, s.columns, s.gap, 2);
      Operand bias(Type::fp32, 1, s.columns, 0, 3), second(type, 1, s.columns, 0, 4);
      Operand y(type, s.rows, s.columns, s.gap, 5), dx(type, s.rows, s.columns, s.gap, 6);
      std::vector<double> both = bias.doubles;
      for (std::size_t i = 0; i < both.size(); ++i) both[i] += second.doubles[i];
      Mask want(s.rows * s.columns);
      kernels::dropout_mask(dropout, s.rows, s.columns, want.data());
      const Memory mask{Mask(want.size(), 2)};
      auto* bits = mask.as<std::uint8_t>();

      residual_drawing(base.view(), x.view(), {bias.array(), second.array()}, dropout, bits, y.view(), nullptr);
      EXPECT_EQ(mask.read<std::uint8_t>(), want);
      reference::residual<double>(base.reference(), x.reference(), both.data(), dropout, y.reference());
      EXPECT_LT(y.error(), error_of(type));
      residual({}, x.view(), {}, 0.25, bits, y.view(), nullptr);
      reference::residual<double>({}, x.reference(), nullptr, dropout, y.reference());
      EXPECT_LT(y.error(), error_of(type));
      dropout_gradient(x.view(), 0.25, bits, dx.view(), nullptr);
      reference::dropout_gradient<double>(x.reference(), dropout, dx.reference());
      EXPECT_LT(dx.error(), error_of(type));
      residual(base.view(), x.view(), {bias.array()}, 0, nullptr, base.view(), nullptr);  // in place
      reference::residual<double>(base.reference(), x.reference(), bias.doubles.data(), {}, base.reference());
      EXPECT_LT(base.error(), error_of(type));
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
