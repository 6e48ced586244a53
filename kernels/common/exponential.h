#pragma once

#include <bit>
#include <cstdint>

namespace orrery::kernels {

// Computes exp(x) within 2 ulp, without branches or tables, so that loops over it vectorise, and with the same bits
// whatever the C library. It writes x as n ln 2 + r with |r| <= ln 2 / 2, and computes exp(r) by its Taylor series up
// to r^7 / 7!, whose next term is below 0.35^8 / 8! = 6e-9. x is clamped to [-87.3, 88.3], so that the result is a
// normal float.
inline float exponential(float x) {
  constexpr float kLog2E = 1.44269504F;
  // the upper 9 bits of ln 2; multiplied by a small integer, they give an exact product
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440055e-4F;  // the lower bits of ln 2: ln 2 - kLn2High
  constexpr float kRound = 12582912.0F;          // 1.5 * 2^23; adding it to a float rounds the float to an integer
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.3F ? 88.3F : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = (p * r * r + r) + 1.0F;
  // The low bits of `shifted` hold the integer n: adding them to the exponent bits of p multiplies p by 2^n.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

}  // namespace orrery::kernels
