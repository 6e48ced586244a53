#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/float16.h"

// Reference implementation of kernels/cpu/weight_codes.h: what weights are after conversion to a format of few bits and
// back. All numbers of a format are listed, and a weight becomes the nearest of them.
namespace orrery::kernels::reference {

// All numbers of a small floating-point format with `exponents` and `mantissas` bits and this bias of the exponent, up
// to `largest`, in increasing order.
inline std::vector<double> numbers_of(int exponents, int mantissas, int bias, double largest) {
  std::vector<double> numbers;
  for (int e = 0; e < 1 << exponents; ++e) {
    for (int m = 0; m < 1 << mantissas; ++m) {
      const double part = static_cast<double>(m) / (1 << mantissas);
      const double size = e == 0 ? std::ldexp(part, 1 - bias) : std::ldexp(1 + part, e - bias);
      if (size > largest) continue;
      numbers.push_back(size);
      if (size > 0) numbers.push_back(-size);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}
inline std::vector<double> e4m3() { return numbers_of(4, 3, 7, 448); }
inline std::vector<double> e2m1() { return numbers_of(2, 1, 1, 6); }

inline double nearest(const std::vector<double>& numbers, double x) {
  double best = numbers.front();
  for (const double n : numbers) best = std::abs(n - x) < std::abs(best - x) ? n : best;
  return best;
}

// Whole numbers of `bits` bits, without and with zero points. half: whether the scale is rounded to fp16.
inline std::vector<double> rounded(const std::vector<float>& x, int bits, bool zeros, bool half) {
  double least = 0, largest = 0;
  for (const float v : x) {
    least = std::min<double>(least, v);
    largest = std::max<double>(largest, v);
  }
  const double codes = zeros ? std::pow(2, bits) - 1 : std::pow(2, bits - 1) - 1;
  const double exact = zeros ? (largest - least) / codes : std::max(largest, -least) / codes;
  const double step = half ? to_float(to_fp16(static_cast<float>(exact))) : static_cast<float>(exact);
  std::vector<double> y;
  if (step == 0) return std::vector<double>(x.size(), 0);
  const double zero = zeros ? std::rint(-least / step) : 0;
  for (const float v : x) {
    const double q = std::rint(v / step) + zero;
    y.push_back((std::clamp(q, zeros ? 0.0 : -codes, codes) - zero) * step);
  }
  return y;
}

}  // namespace orrery::kernels::reference
