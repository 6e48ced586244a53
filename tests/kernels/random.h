#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/common/matrix.h"
#include "kernels/common/philox.h"

// Random data and comparisons that the kernel tests share.
namespace orrery::kernels {

// Numbers in [-1, 1), the same for the same seed. Held as float, so that a double copy is exact.
inline std::vector<float> random_floats(std::int64_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, seed)[0];
    x[i] = static_cast<float>(word >> 8) * 0x1p-23F - 1;
  }
  return x;
}

inline std::vector<double> wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// |a - b| / |b|, of Euclidean norms.
template <class A, class B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// The gradient at x of sum(weight * f(x)), by central differences in double. A step of 1e-4 leaves an error of about
// 1e-8 from the third derivative and 1e-12 from rounding.
inline std::vector<double> finite_differences(std::vector<double> x, const std::vector<double>& weight,
                                              const std::function<std::vector<double>(const std::vector<double>&)>& f) {
  constexpr double kStep = 1e-4;
  const auto value = [&] {
    const std::vector<double> y = f(x);
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += weight[i] * y[i];
    return total;
  };
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = value();
    x[i] = at - kStep;
    gradient[i] = (above - value()) / (2 * kStep);
    x[i] = at;
  }
  return gradient;
}

constexpr double kFloatError = 2e-6;       // error of fp32 sums of a few hundred terms, against double
constexpr double kDifferenceError = 1e-6;  // error of central differences, against an exact gradient

}  // namespace orrery::kernels
