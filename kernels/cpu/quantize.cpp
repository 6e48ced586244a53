#include "kernels/cpu/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace orrery::kernels {
namespace {

std::int64_t runs_of(std::int64_t n, std::int64_t length) { return (n + length - 1) / length; }

float largest_magnitude(const float* x, std::int64_t n) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return INFINITY;
    largest = std::max(largest, std::abs(x[i]));
  }
  return largest;
}

// Scales may lie at any address, so they are copied byte by byte.
void put_scale(std::byte* to, std::int64_t index, float scale) { std::memcpy(to + 4 * index, &scale, sizeof scale); }
float scale_at(const std::byte* from, std::int64_t index) {
  float scale = 0;
  std::memcpy(&scale, from + 4 * index, sizeof scale);
  return scale;
}

void put_half(std::byte* codes, std::int64_t index, unsigned code) {
  std::byte& at = codes[index / 2];
  at = index % 2 == 0 ? static_cast<std::byte>(code) : at | static_cast<std::byte>(code << 4);
}
unsigned half_at(const std::byte* codes, std::int64_t index) {
  const auto both = static_cast<unsigned>(codes[index / 2]);
  return index % 2 == 0 ? both & 15U : both >> 4;
}

std::int64_t code_bytes(Codes codes, std::int64_t n) { return codes == Codes::int8 ? n : runs_of(n, 2); }

void put_code(Codes codes, std::byte* to, std::int64_t index, int code) {
  if (codes == Codes::int8)
    to[index] = static_cast<std::byte>(code);
  else
    put_half(to, index, static_cast<unsigned>(code) & 15U);
}

int code_at(Codes codes, const std::byte* from, std::int64_t index) {
  if (codes == Codes::int8) return static_cast<std::int8_t>(from[index]);
  const auto half = static_cast<int>(half_at(from, index));
  return half > 7 ? half - 16 : half;
}

unsigned nearest_level(float x) {
  const auto above = std::lower_bound(kNf4Levels.begin(), kNf4Levels.end(), x);
  if (above == kNf4Levels.begin()) return 0;
  if (above == kNf4Levels.end()) return kNf4Levels.size() - 1;
  const auto index = static_cast<unsigned>(above - kNf4Levels.begin());
  return x - *(above - 1) <= *above - x ? index - 1 : index;
}

}  // namespace

std::int64_t quantized_bytes(Codes codes, std::int64_t block, std::int64_t n) {
  return code_bytes(codes, n) + 4 * runs_of(n, block);
}

void quantize(Codes codes, std::int64_t block, std::int64_t n, const float* from, std::byte* to) {
  std::byte* scales = to + code_bytes(codes, n);
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t count = std::min(block, n - first);
    const float scale = largest_magnitude(from + first, count) / static_cast<float>(largest_code(codes));
    put_scale(scales, first / block, scale);
    for (std::int64_t i = first; i < first + count; ++i) {
      // Codes of a block without finite numbers are all 1, which an infinite scale makes infinite again. A scale below
      // the least normal number may be rounded so far down that a quotient exceeds the largest code.
      const auto most = static_cast<float>(largest_code(codes));
      const float quotient = std::isfinite(scale) ? std::clamp(std::nearbyint(from[i] / scale), -most, most) : 1;
      const float code = scale == 0 ? 0 : quotient;
      put_code(codes, to, i, static_cast<int>(code));
    }
  }
}

void dequantize(Codes codes, std::int64_t block, std::int64_t n, const std::byte* from, float* to) {
  const std::byte* scales = from + code_bytes(codes, n);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<float>(code_at(codes, from, i)) * scale_at(scales, i / block);
}

std::int64_t nf4_bytes(std::int64_t n) {
  const std::int64_t blocks = runs_of(n, kNf4Block);
  return runs_of(n, 2) + blocks + 4 * runs_of(blocks, kNf4ScalesOfOne);
}

void quantize_nf4(std::int64_t n, const float* from, std::byte* to) {
  const std::int64_t blocks = runs_of(n, kNf4Block);
  std::byte *scales = to + runs_of(n, 2), *wholes = scales + blocks;
  std::vector<float> largest;
  for (std::int64_t first = 0; first < n; first += kNf4Block) {
    const std::int64_t count = std::min(kNf4Block, n - first);
    largest.push_back(largest_magnitude(from + first, count));
    for (std::int64_t i = first; i < first + count; ++i)
      put_half(to, i, nearest_level(largest.back() == 0 ? 0 : from[i] / largest.back()));
  }
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t first = b / kNf4ScalesOfOne * kNf4ScalesOfOne;
    const float whole =
        *std::max_element(largest.begin() + first, largest.begin() + std::min(first + kNf4ScalesOfOne, blocks));
    scales[b] = static_cast<std::byte>(whole == 0             ? 0
                                       : std::isfinite(whole) ? std::lround(255 * largest[b] / whole)
                                                              : 255);
    put_scale(wholes, b / kNf4ScalesOfOne, whole);
  }
}

void dequantize_nf4(std::int64_t n, const std::byte* from, float* to) {
  const std::int64_t blocks = runs_of(n, kNf4Block);
  const std::byte *scales = from + runs_of(n, 2), *wholes = scales + blocks;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t b = i / kNf4Block;
    const float scale = static_cast<float>(scales[b]) / 255 * scale_at(wholes, b / kNf4ScalesOfOne);
    to[i] = kNf4Levels[half_at(from, i)] * scale;
  }
}

}  // namespace orrery::kernels
