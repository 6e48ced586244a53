#include "kernels/cuda/elementwise.h"

#include <limits>

#include "kernels/cpu/update.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Elementwise = OnDevice;

// Numbers of elements: less than a pack, whole packs, a short pack at the end, more than a block.
constexpr std::int64_t kSizes[] = {1, 8, 13, 4099};

// Calls f(type, type, n) for all pairs of types.
template <class F>
void over_pairs(const F& f) {
  for (const Type a : kTypes) {
    for (const Type b : kTypes) {
      for (const std::int64_t n : kSizes) {
        SCOPED_TRACE(name_of(a) + " " + name_of(b) + " " + std::to_string(n));
        f(a, b, n);
      }
    }
  }
}

// x = f(x, y) for all elements, in double.
template <class F>
void each(Operand& x, const Operand& y, const F& f) {
  for (std::size_t i = 0; i < x.doubles.size(); ++i) x.doubles[i] = f(x.doubles[i], y.doubles[i]);
}

TEST_F(Elementwise, SumsCopiesAndConversionsRoundOnce) {
  over_pairs([](Type a, Type b, std::int64_t n) {
    const Operand from(a, 1, n, 0, 1);
    Operand sum(b, 1, n, 0, 2), largest(b, 1, n, 0, 3), copy(b, 1, n, 0, 4), scaled(b, 1, n, 0, 5);
    accumulate(n, from.array(), sum.array(), nullptr);
    each(sum, from, [](double x, double y) { return x + y; });
    EXPECT_LT(sum.error(), error_of(b));
    accumulate_maximum(n, from.array(), largest.array(), nullptr);
    each(largest, from, [](double x, double y) { return std::max(x, y); });
    EXPECT_LT(largest.error(), error_of(b));
    cast(n, from.array(), copy.array(), nullptr);
    each(copy, from, [](double, double y) { return y; });
    EXPECT_LE(copy.error(), rounding_of(b));
    multiply(n, {0.3}, from.array(), scaled.array(), nullptr, nullptr);
    each(scaled, from, [](double, double y) { return 0.3 * y; });
    EXPECT_LT(scaled.error(), error_of(b));
  });
}

TEST_F(Elementwise, AddFillAndSoftCap) {
  for (const Type type : kTypes) {
    for (const std::int64_t n : kSizes) {
      const Operand a(type, 1, n, 0, 1);
      Operand b(type, 1, n, 0, 2), filled(type, 1, n, 0, 3), capped(type, 1, n, 0, 4), gradient(type, 1, n, 0, 5);
      add(n, a.array(), b.array(), b.array(), nullptr);
      each(b, a, [](double x, double y) { return x + y; });
      EXPECT_LT(b.error(), error_of(type));
      fill(n, 0.75F, filled.array(), nullptr);
      each(filled, a, [](double, double) { return 0.75; });
      EXPECT_EQ(filled.error(), 0);
      soft_cap(n, 0.5, capped.array(), nullptr);
      each(capped, a, [](double x, double) { return 0.5 * std::tanh(x / 0.5); });
      EXPECT_LT(capped.error(), error_of(type));
      soft_cap_gradient(n, 1.5, a.array(), gradient.array(), nullptr);
      each(gradient, a, [](double x, double y) { return x * (1 - y * y / 2.25); });
      EXPECT_LT(gradient.error(), error_of(type));
    }
  }
}

TEST_F(Elementwise, UnalignedPartsAreLeftAsTheyAreOutside) {
  for (const Type type : kTypes) {
    Operand x(type, 1, 100, 0, 1);
    const Array inner = {element_at(x.memory.as<void>(), type, 3), type};
    multiply(90, {2}, inner, inner, nullptr, nullptr);
    for (std::int64_t i = 3; i < 93; ++i) x.doubles[i] *= 2;
    EXPECT_EQ(x.error(), 0);
  }
}

TEST_F(Elementwise, FactorsAreReadOnTheDevice) {
  const Memory norm(std::vector<float>{16}), scale(std::vector<float>{4}), flag(std::vector<int>{0});
  Operand x(Type::fp32, 1, 100, 0, 1), y(Type::fp32, 1, 100, 0, 2);
  multiply(100, {2, scale.as<float>(), norm.as<float>(), 1}, x.array(), y.array(), flag.as<int>(), nullptr);
  each(y, x, [](double, double v) { return v * 2 / 4 * clip_factor(16, 1); });
  EXPECT_LT(y.error(), kFloatError);
  EXPECT_EQ(flag.read<int>()[0], 0);
  multiply(100, {1, nullptr, norm.as<float>(), 5}, x.array(), y.array(), nullptr, nullptr);  // too small to clip
  each(y, x, [](double, double v) { return v; });
  EXPECT_EQ(y.error(), 0);
}

TEST_F(Elementwise, NumbersThatAreNotFiniteAreNoticed) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const Type type : kTypes) {
      std::vector<float> values(50, 1);
      values[37] = -bad;
      const Memory x(stored(type, values)), flag(std::vector<int>{0});
      multiply(50, {}, {x.as<void>(), type}, {x.as<void>(), type}, flag.as<int>(), nullptr);
      EXPECT_EQ(flag.read<int>()[0], 1);
    }
  }
}

TEST_F(Elementwise, CastTransposeWritesBoth) {
  for (const Type a : kTypes) {
    for (const Type b : kTypes) {
      for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{3, 70}, {65, 32}, {1, 1}}) {
        Operand from(a, rows, columns, 1, 1), to(b, rows, columns, 3, 2), transposed(b, columns, rows, 2, 3);
        cast_transpose(from.view(), to.view(), transposed.view(), nullptr);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) {
            to.reference().row(r)[c] = transposed.reference().row(c)[r] = from.reference().row(r)[c];
          }
        }
        EXPECT_LE(to.error(), rounding_of(b));
        EXPECT_LE(transposed.error(), rounding_of(b));
      }
    }
  }
}

TEST_F(Elementwise, SquaredNormsAddUp) {
  for (const Type type : kTypes) {
    const Memory total(std::vector<double>{1}), workspace(squared_norm_workspace()), norm(std::vector<float>{2});
    double want = 1;
    for (const std::int64_t n : kSizes) {
      const Operand x(type, 1, n, 0, n);
      add_squared_norm(n, x.array(), total.as<double>(), workspace.workspace(), nullptr);
      for (const double v : x.doubles) want += v * v;
    }
    EXPECT_NEAR(total.read<double>()[0], want, 1e-12 * want);
    store_sum(total.as<double>(), true, norm.as<float>(), nullptr);
    EXPECT_NEAR(norm.read<float>()[0], want + 2, 1e-7 * want);
    store_sum(total.as<double>(), false, norm.as<float>(), nullptr);
    EXPECT_NEAR(norm.read<float>()[0], want, 1e-7 * want);
  }
}

TEST_F(Elementwise, BiasGradientSumsRows) {
  for (const Type type : kTypes) {
    for (const Type of_bias : kTypes) {
      for (const MatrixShape& s : {MatrixShape{1, 1, 0}, {40, 129, 5}, {33, 64, 8}, {700, 24, 0}, {9, 1024, 16}}) {
        Operand dy(type, s.rows, s.columns, s.gap, 1), dbias(of_bias, 1, s.columns, 0, 2);
        const Memory workspace(bias_gradient_workspace(s.rows, s.columns));
        bias_gradient(dy.view(), dbias.array(), workspace.workspace(), nullptr);
        for (std::int64_t r = 0; r < s.rows; ++r) {
          for (std::int64_t c = 0; c < s.columns; ++c) dbias.doubles[c] += dy.reference().row(r)[c];
        }
        EXPECT_LT(dbias.error(), error_of(of_bias)) << name_of(type, s);
      }
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
