#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/cpu/quantize.h"

// Reference implementation of kernels/cpu/quantize.h: what the numbers are after conversion to a format of few bits and
// back.
namespace orrery::kernels::reference {

// The largest magnitude of each block of x.
inline std::vector<float> largest_of_blocks(const std::vector<float>& x, std::size_t block) {
  std::vector<float> largest((x.size() + block - 1) / block);
  for (std::size_t i = 0; i < x.size(); ++i) largest[i / block] = std::max(largest[i / block], std::abs(x[i]));
  return largest;
}

// `largest` is the largest code: 127 in 8 bits, 7 in 4 bits.
inline std::vector<float> quantized(const std::vector<float>& x, float largest, std::size_t block) {
  const std::vector<float> magnitudes = largest_of_blocks(x, block);
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = magnitudes[i / block] / largest;
    y[i] = scale == 0 ? 0 : std::rint(x[i] / scale) * scale;
  }
  return y;
}

inline std::vector<float> quantized_nf4(const std::vector<float>& x) {
  const std::vector<float> scales = largest_of_blocks(x, 64), wholes = largest_of_blocks(scales, 256);
  std::vector<float> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float part = scales[i / 64] == 0 ? 0 : x[i] / scales[i / 64];
    float nearest = kNf4Levels.front();
    for (const float level : kNf4Levels) nearest = std::abs(level - part) < std::abs(nearest - part) ? level : nearest;
    const float whole = wholes[i / 64 / 256];
    const float code = whole == 0 ? 0 : std::round(255 * scales[i / 64] / whole);
    y.push_back(nearest * (code / 255 * whole));
  }
  return y;
}

}  // namespace orrery::kernels::reference
