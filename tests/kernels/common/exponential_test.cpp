#include "kernels/common/exponential.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery::kernels {
namespace {

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  for (double x = -87.2; x < 88.2; x += 0.000731) {
    const auto argument = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(argument));
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    ASSERT_LE(std::abs(static_cast<double>(exponential(argument)) - exact), 2 * unit) << x;
  }
}

TEST(Exponential, IsExactAtZeroAndFiniteAtTheEnds) {
  EXPECT_EQ(exponential(0), 1.0F);
  EXPECT_LT(exponential(-1e30F), 2e-38F);
  EXPECT_GT(exponential(-1e30F), 0.0F);
  EXPECT_TRUE(std::isfinite(exponential(1e30F)));
}

}  // namespace
}  // namespace orrery::kernels
