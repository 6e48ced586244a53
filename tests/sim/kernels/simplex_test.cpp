#include "sim/kernels/simplex.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Simplex, FindsTheBottomOfACurvedValley) {
  // Rosenbrock's function (The Computer Journal 3, 1960), whose least value is at (1, 1).
  const auto valley = [](const std::vector<double>& x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const std::vector<double> found = least_by_simplex(valley, {-1.2, 1}, 0.2, 400);
  EXPECT_NEAR(found[0], 1, 0.01);
  EXPECT_NEAR(found[1], 1, 0.01);
}

TEST(Simplex, StopsAfterItsCalls) {
  int calls = 0;
  const auto slope = [&](const std::vector<double>& x) {
    ++calls;
    return x[0];
  };
  EXPECT_LT(least_by_simplex(slope, {0}, 1, 50).front(), -10);
  EXPECT_LT(calls, 60);
  EXPECT_TRUE(least_by_simplex(slope, {}, 1, 50).empty());
}

}  // namespace
}  // namespace orrery
