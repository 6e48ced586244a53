#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace orrery::kernels {

// The 8-bit format E4M3 (Micikevicius et al. 2022, 2209.05433): 4 bits of exponent, 3 of mantissa, no infinities; the
// largest number is 448, the smallest normal one 2^-6.
inline constexpr float kLargestE4m3 = 448;

// Rounds to the nearest number of E4M3, ties to even; larger magnitudes become the largest number.
inline std::uint8_t to_e4m3(float x) {
  const std::uint8_t sign = std::signbit(x) ? 0x80U : 0;
  if (std::isnan(x)) return 0x7fU | sign;
  const float size = std::min(std::abs(x), kLargestE4m3);
  if (size < 0x1p-6F) return static_cast<std::uint8_t>(sign | static_cast<unsigned>(std::nearbyint(size * 0x1p9F)));
  const int exponent = std::ilogb(size);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));  // 8 to 16 eighths
  return static_cast<std::uint8_t>(sign | static_cast<unsigned>((exponent + 6) * 8 + steps));
}

inline float from_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7f) == 0x7f) return NAN;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80U) != 0 ? -size : size;
}

// The magnitudes of the 4-bit format E2M1 (OCP Microscaling Formats Specification 1.0, table 5); a code is a sign bit
// and the index of a magnitude.
inline constexpr std::array<float, 8> kE2m1 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};

// Rounds to the nearest number of E2M1, ties to the even index; larger magnitudes become 6.
inline std::uint8_t to_e2m1(float x) {
  const float size = std::abs(x);
  unsigned best = 0;
  for (unsigned i = 1; i < kE2m1.size(); ++i) {
    const float before = std::abs(kE2m1[best] - size), now = std::abs(kE2m1[i] - size);
    if (now < before || (now == before && i % 2 == 0)) best = i;
  }
  return static_cast<std::uint8_t>(best | (std::signbit(x) ? 8U : 0));
}
inline float from_e2m1(std::uint8_t code) { return (code & 8U) != 0 ? -kE2m1[code & 7U] : kE2m1[code & 7U]; }

}  // namespace orrery::kernels
