#pragma once

#include <array>
#include <cstdint>

namespace orrery::kernels {

// Optimizer moments in 8 bits (Dettmers et al. 2022, 2110.02861): blocks of consecutive elements are divided by their
// largest magnitude, the block's scale, and each quotient is rounded to the nearest of 256 values. These are the values
// of dynamic quantization (section 2.2 there): one byte has a sign (first moments) or one more bit of fraction (second
// moments, which are never negative), an exponent of ten in unary, and a linear fraction from 0.1 to 1 in the bits that
// are left, each fraction standing for the middle of its interval; 0 and 1 are values too.
enum class MomentSign : std::uint8_t { either, positive };

// Returns the 256 values in increasing order; a byte is an index into them.
const std::array<float, 256>& moment_values(MomentSign sign);

// Computes n elements from their bytes and the scales of their blocks of `block` elements. The last block may be
// shorter.
void widen_moments(MomentSign sign, std::int64_t block, std::int64_t n, const std::uint8_t* bytes, const float* scales,
                   float* to);

// Rounds n elements to bytes, and writes the scales of their blocks.
void narrow_moments(MomentSign sign, std::int64_t block, std::int64_t n, const float* from, std::uint8_t* bytes,
                    float* scales);

}  // namespace orrery::kernels
