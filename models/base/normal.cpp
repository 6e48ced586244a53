#include "models/base/normal.h"

#include <cmath>
#include <numbers>

namespace orrery {
namespace {

// Standard normal values beyond this number count for nothing in double precision.
constexpr double kEnd = 12;

}  // namespace

double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double share) {
  // The smaller tail is looked for, whose share keeps its digits.
  if (share > 0.5) return -normal_quantile(1 - share);
  double low = -40, high = 0;
  while (high - low > 1e-13 * (1 - low)) {
    const double middle = (low + high) / 2;
    if (middle == low || middle == high) break;
    (normal_share(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

// The mean of a distribution F is the integral of 1 - F over positive values less that of F over negative ones. The sum
// over even steps is exact to rounding, since F is analytic and flat at both ends.
double largest_normal(double n) {
  constexpr double kStep = 0.1;
  const auto all_below = [n](double x) { return std::exp(n * std::log1p(-normal_share(-x))); };
  double sum = (1 - all_below(0)) / 2 - all_below(0) / 2;
  for (double x = kStep; x < kEnd; x += kStep) sum += 1 - all_below(x) - all_below(-x);
  return kStep * sum;
}

}  // namespace orrery
