#include "models/base/normal.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Normal, QuantilesAreTheInverseOfShares) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-11);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-10);
  for (const double x : {-7.0, -2.5, 0.3, 3.0}) EXPECT_NEAR(normal_quantile(normal_share(x)), x, 1e-9);
}

// Closed forms of the expected largest of 1 to 5 standard normals (Jones 1948; Godwin 1949), and tables of order
// statistics (Harter 1961) for more.
TEST(Normal, TheLargestOfManyHasItsClosedForm) {
  const double pi = std::numbers::pi;
  EXPECT_NEAR(largest_normal(1), 0, 1e-12);
  EXPECT_NEAR(largest_normal(2), 1 / std::sqrt(pi), 1e-12);
  EXPECT_NEAR(largest_normal(3), 3 / (2 * std::sqrt(pi)), 1e-12);
  EXPECT_NEAR(largest_normal(4), 3 / (pi * std::sqrt(pi)) * std::acos(-1.0 / 3), 1e-12);
  EXPECT_NEAR(largest_normal(5), 5 / (4 * std::sqrt(pi)) + 15 / (2 * pi * std::sqrt(pi)) * std::asin(1.0 / 3), 1e-12);
  EXPECT_NEAR(largest_normal(8), 1.42360030604, 1e-10);
  EXPECT_NEAR(largest_normal(100), 2.50759363, 1e-7);
  EXPECT_NEAR(largest_normal(400), 2.96818, 1e-4);
}

}  // namespace
}  // namespace orrery
