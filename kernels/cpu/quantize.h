#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::kernels {

// Conversions between fp32 numbers and formats of few bits. A run of n numbers is stored as the codes of all numbers,
// the first of two 4-bit codes in the lower half of its byte, followed by the scales of all blocks of `block` numbers
// (the last block may be shorter), at any address.
//
// In 8 and 4 bits a code is a whole number from -127 to 127, or from -7 to 7, and a block's scale is its largest
// magnitude over the largest code, in fp32. A number becomes the nearest code, ties to even, so the error of a number
// is at most half a scale. Quantisation of ZeRO++ (2306.10209, section 3.1) is symmetric and block by block, too. Where
// a number of a block is not finite, all numbers of the block are not finite after the conversion back.
enum class Codes : std::uint8_t { int8, int4 };

constexpr int largest_code(Codes codes) { return codes == Codes::int8 ? 127 : 7; }

// Returns the bytes of n numbers with their scales.
std::int64_t quantized_bytes(Codes codes, std::int64_t block, std::int64_t n);
void quantize(Codes codes, std::int64_t block, std::int64_t n, const float* from, std::byte* to);
void dequantize(Codes codes, std::int64_t block, std::int64_t n, const std::byte* from, float* to);

// The levels of NF4, quantiles of a normal distribution divided by the largest one (QLoRA, Dettmers et al. 2023,
// 2305.14314, appendix E).
inline constexpr std::array<float, 16> kNf4Levels = {-1.0F,
                                                     -0.6961928009986877F,
                                                     -0.5250730514526367F,
                                                     -0.39491748809814453F,
                                                     -0.28444138169288635F,
                                                     -0.18477343022823334F,
                                                     -0.09105003625154495F,
                                                     0.0F,
                                                     0.07958029955625534F,
                                                     0.16093020141124725F,
                                                     0.24611230194568634F,
                                                     0.33791524171829224F,
                                                     0.44070982933044434F,
                                                     0.5626170039176941F,
                                                     0.7229568362236023F,
                                                     1.0F};
// Number of weights of a block, which share a scale, and of the scales that share an fp32 number (QLoRA, section 3).
inline constexpr std::int64_t kNf4Block = 64, kNf4ScalesOfOne = 256;

// Converts n weights to NF4. A number is divided by the largest magnitude of its block and becomes the nearest level.
// The largest magnitudes are positive, so each is stored as a whole number of 255ths of the largest of 256 of them,
// which is an fp32 number. Where one of the numbers under such a scale is not finite, none of them is after the
// conversion back. (QLoRA, section 3, subtracts their mean first, which would be another number for each weight
// matrix.) The run ends with the blocks' 8-bit scales and then the fp32 numbers.
std::int64_t nf4_bytes(std::int64_t n);
void quantize_nf4(std::int64_t n, const float* from, std::byte* to);
void dequantize_nf4(std::int64_t n, const std::byte* from, float* to);

}  // namespace orrery::kernels
