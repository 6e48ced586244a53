#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace orrery::kernels {

// A bfloat16 as it is stored: the upper half of a float. No arithmetic is done in this type.
struct Bf16 {
  std::uint16_t bits = 0;
};

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

// Rounds to the nearest bfloat16, ties to even. A NaN stays a (quiet) NaN, whichever bits it has; a value that is too
// large becomes infinite.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

template <class T>
T stored_as(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(x);
  } else {
    return x;
  }
}

}  // namespace orrery::kernels
