#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// Reference implementation of kernels/cpu/eight_bit.h in double, from the bits of a byte (Dettmers et al. 2022,
// 2110.02861, sections 1.3 and 2.2) and by a search through all values.
namespace orrery::kernels::reference {

// The value of a byte: an optional sign, then as many zeros as the exponent of 1/10, a one, and the bits of the
// fraction, each fraction standing for the middle of its interval of [0.1, 1]. The byte that would be a negative zero,
// or without a sign the exponent that is left over, stands for 1.
inline double moment_value(std::uint8_t byte, bool has_sign) {
  const int bits = has_sign ? 7 : 8;
  const int magnitude = has_sign ? byte & 0x7f : byte;
  if (has_sign ? byte == 0x80 : byte == 1) return 1;
  if (magnitude == 0) return 0;
  int zeros = 0;
  while ((magnitude >> (bits - 1 - zeros)) == 0) ++zeros;
  const int fraction_bits = bits - 1 - zeros, fractions = 1 << fraction_bits;
  const double fraction = 0.1 + 0.9 * ((magnitude & (fractions - 1)) + 0.5) / fractions;
  return (has_sign && byte >= 0x80 ? -1 : 1) * fraction * std::pow(10.0, -zeros);
}

// A block of moments after it was rounded to bytes and a scale.
inline std::vector<double> rounded_block(const std::vector<double>& block, bool has_sign) {
  double scale = 0;
  for (const double x : block) scale = std::fmax(scale, std::fabs(x));
  std::vector<double> result;
  for (const double x : block) {
    double best = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const double value = scale * moment_value(static_cast<std::uint8_t>(byte), has_sign);
      if (std::fabs(value - x) < std::fabs(best - x)) best = value;
    }
    result.push_back(best);
  }
  return result;
}

}  // namespace orrery::kernels::reference
