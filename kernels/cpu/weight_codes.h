#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery::kernels {

// Conversions of weight matrices between fp32 and formats of few bits, by rounding each weight to the nearest code
// (round to nearest: q = round(x / S) + Z).
//
// Whole numbers of b bits without zero points have codes from -(2^(b-1) - 1) to 2^(b-1) - 1 and the scale S of the
// largest magnitude over the largest code; with zero points, codes from 0 to 2^b - 1, S = (largest - least) / (2^b - 1)
// and Z = round(-least / S), where least <= 0 <= largest. fp8: E4M3 of x / S, S the largest magnitude over 448. mxfp8:
// the same with a power of two as S; mxfp4: E2M1 with one. nvfp4: E2M1 of x / (S T), where S is in E4M3 and T, the
// largest magnitude of the matrix over 448 * 6, is an fp32 number.
enum class WeightCodes : std::uint8_t { fp8, int8, int4, nvfp4, mxfp8, mxfp4 };

// The shape of a matrix (out, in), which holds `matrices` matrices one above the other, and its format. group: number
// of neighbouring weights of a row that share a scale; 0: all of a row; -1: all of a matrix.
struct CodedMatrix {
  WeightCodes codes = WeightCodes::int8;
  std::int64_t group = 0;
  bool zeros = false;
  std::int64_t out = 0, in = 0, matrices = 1;

  std::int64_t groups() const;
  std::int64_t group_of(std::int64_t row, std::int64_t column) const;
  // Returns the bytes of the matrix: codes, scales, zero points and the matrices' own scales, each filling words of
  // four bytes.
  std::int64_t bytes() const;
};

// The least and the largest of some weights; 0 is always between them.
struct WeightRange {
  float least = 0, largest = 0;

  void add(float x) {
    least = x < least ? x : least;
    largest = x > largest ? x : largest;
  }
  float magnitude() const { return largest > -least ? largest : -least; }
};

// The ranges of all groups, and of all matrices. They may be those of a larger matrix of which this one is a part, so
// that every part has the same codes as the whole.
struct WeightRanges {
  std::vector<WeightRange> groups, matrices;
};
WeightRanges ranges_of(const CodedMatrix& m, const float* weights);

void quantize_matrix(const CodedMatrix& m, const float* weights, const WeightRanges& ranges, std::byte* to);
void widen_matrix(const CodedMatrix& m, const std::byte* from, float* weights);

// Rounds a matrix to a format and back, each group by its own largest magnitude (quantisation-aware training). Scales
// stay fp32 numbers.
void round_matrix(const CodedMatrix& m, const float* from, float* to);

// Conversions of one vector of a cache of keys and values to codes of 8 or 4 bits from 0 on, with the least number and
// the step between codes in fp16 behind them: x = least + code * step.
std::int64_t vector_bytes(int bits, std::int64_t n);
void quantize_vector(int bits, std::int64_t n, const float* from, std::byte* to);
void widen_vector(int bits, std::int64_t n, const std::byte* from, float* to);
// The same in NVFP4: numbers in E2M1, and behind them for each 16 a scale in E4M3, by which the largest is 6 (the
// largest of E2M1). There is no further scale for these scales, so that a largest number below 6 * 2^-10 gives zeros,
// and one above 6 * 448 is cut off.
void quantize_nvfp4(std::int64_t n, const float* from, std::byte* to);
void widen_nvfp4(std::int64_t n, const std::byte* from, float* to);

// Returns the magnitude above which numbers are to be clipped before they become whole numbers of `bits` bits, so that
// the histogram of their magnitudes changes the least: the divergence KL(P || Q) of the clipped histogram P from Q, in
// which as many neighbouring bins as one code stands for share their counts, is least (Migacz 2017, "8-bit inference
// with TensorRT"). Returns the largest magnitude where all numbers are 0 or fewer than the bins of the histogram.
float least_divergence(const std::vector<float>& numbers, int bits);

// The divergence KL(P || Q) of a histogram whose first `kept` bins are kept, the others being counted in the last of
// these, from the same bins in `levels` levels.
double clipped_divergence(const std::vector<double>& histogram, std::int64_t kept, std::int64_t levels);

}  // namespace orrery::kernels
