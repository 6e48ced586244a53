#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/cpu/quantize.h"

// Reference implementation of kernels/cpu/quantize.h: what the numbers are after conversion to a format of few bits and
// back.
namespace orrery::kernels::reference {

inline float largest_in(const std::vector<float>& x, std::size_t first, std::size_t count) {
  float largest = 0;
  for (std::size_t i = first; i < std::min(first + count, x.size()); ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

// `largest` is the largest code: 127 in 8 bits, 7 in 4 bits.
inline std::vector<float> quantized(const std::vector<float>& x, float largest, std::size_t block) {
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = largest_in(x, i / block * block, block) / largest;
    y[i] = scale == 0 ? 0 : std::rint(x[i] / scale) * scale;
  }
  return y;
}

inline std::vector<float> quantized_nf4(const std::vector<float>& x) {
  std::vector<float> scales, y;
  for (std::size_t first = 0; first < x.size(); first += 64) scales.push_back(largest_in(x, first, 64));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float part = scales[i / 64] == 0 ? 0 : x[i] / scales[i / 64];
    float nearest = kNf4Levels.front();
    for (const float level : kNf4Levels) nearest = std::abs(level - part) < std::abs(nearest - part) ? level : nearest;
    const float whole = largest_in(scales, i / 64 / 256 * 256, 256);
    const float code = whole == 0 ? 0 : std::round(255 * scales[i / 64] / whole);
    y.push_back(nearest * (code / 255 * whole));
  }
  return y;
}

}  // namespace orrery::kernels::reference
