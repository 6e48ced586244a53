#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace orrery::kernels {

// bfloat16, the upper half of a float. Bf16 and Fp16 only store numbers; arithmetic is done in float.
struct Bf16 {
  std::uint16_t bits = 0;
};
// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa; the largest number is 65504.
struct Fp16 {
  std::uint16_t bits = 0;
};
enum class Format16 : std::uint8_t { bf16, fp16 };

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline float to_float(Fp16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16, rest = x.bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  const float size =
      rest < 0x400U ? static_cast<float>(rest) * 0x1p-24F : std::bit_cast<float>((rest << 13) + ((127U - 15U) << 23));
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
}

// Rounds to the nearest bfloat16, ties to even. A NaN stays a (quiet) NaN, whichever bits it has; a value that is too
// large becomes infinite.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

// Rounds to the nearest binary16, ties to even; NaN and values that are too large as in to_bf16(). Results below 2^-14
// (subnormal numbers) are multiples of 2^-24. The floats from 0.5 to 1 are 2^-24 apart too, so adding 0.5 to a value
// rounds it to such a multiple.
inline Fp16 to_fp16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000U, size = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (size > 0x7f800000U)
    half = 0x7e00U;
  else if (size >= 0x477ff000U)  // bits of 65520, half way between 65504, the largest binary16, and 65536
    half = 0x7c00U;
  else if (size < 0x38800000U)  // bits of 2^-14, the smallest normal binary16
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  else
    half = (size + 0xfffU + ((size >> 13) & 1U) - ((127U - 15U) << 23)) >> 13;
  return {static_cast<std::uint16_t>(sign | half)};
}

template <class T>
T stored_as(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(x);
  } else if constexpr (std::is_same_v<T, Fp16>) {
    return to_fp16(x);
  } else {
    return x;
  }
}

// Calls f with a null pointer, whose type tells f how numbers of `width` bytes are stored: float for 4 bytes, else
// Half.
template <class Half, class F>
void with_type(std::int64_t width, const F& f) {
  if (width == 4)
    f(static_cast<float*>(nullptr));
  else
    f(static_cast<Half*>(nullptr));
}
template <class F>
void with_type(std::int64_t width, Format16 format, const F& f) {
  if (format == Format16::fp16)
    with_type<Fp16>(width, f);
  else
    with_type<Bf16>(width, f);
}

// Calls f with two null pointers, whose types tell f how numbers of `first` and of `second` bytes are stored.
template <class Half, class F>
void with_types(std::int64_t first, std::int64_t second, const F& f) {
  with_type<Half>(first, [&](auto* a) { with_type<Half>(second, [&](auto* b) { f(a, b); }); });
}
template <class F>
void with_types(std::int64_t first, std::int64_t second, Format16 format, const F& f) {
  if (format == Format16::fp16)
    with_types<Fp16>(first, second, f);
  else
    with_types<Bf16>(first, second, f);
}

}  // namespace orrery::kernels
