#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/base/precision.h"
#include "models/base/units.h"

namespace orrery {

// The code by which a stored weight stands for a number. wide: the weights have the width of activations. fp8: E4M3.
// int8, int4, int3: whole numbers. nvfp4: E2M1 with a scale in E4M3 for each 16 weights. mxfp8, mxfp4: E4M3 and E2M1
// with a power of two as the scale of each 32 weights (OCP Microscaling Formats Specification 1.0).
enum class WeightCode : std::uint8_t { wide, fp8, int8, int4, int3, nvfp4, mxfp8, mxfp4 };

// Values of WeightFormat::group: the weights of an output (a row of the matrix) or of the whole matrix share a scale.
inline constexpr std::int64_t kChannelGroup = 0, kTensorGroup = -1;

// The format in which the weights of a matrix (out, in) are stored for text generation: a code for each weight, and a
// scale for each `group` neighbouring weights of a row, by which x stands for (code - zero point) * scale. zeros:
// whether each group has a zero point as wide as a code; else the zero point is 0. outliers: millionths of the weights
// that are stored beside the codes, a number of 16 bits and its column of 16 bits each. scale_group: if above 0, scales
// and zero points are themselves codes of 3 bits, of which so many share four numbers of 16 bits (SpQR).
struct WeightFormat {
  WeightCode code = WeightCode::wide;
  std::int64_t group = kTensorGroup;
  bool zeros = false;
  std::int64_t outliers = 0;
  std::int64_t scale_group = 0;

  bool narrow() const { return code != WeightCode::wide; }
  bool operator==(const WeightFormat&) const = default;
};

std::string_view name_of(WeightCode code);
// Returns the bits of one code.
std::int64_t code_bits(WeightCode code);
// Returns the scales of a matrix of `out` rows and `in` columns that holds `matrices` matrices one above the other.
std::int64_t scales_of(const WeightFormat& format, std::int64_t out, std::int64_t in, std::int64_t matrices);
// Returns the bytes of such a matrix: codes, scales, zero points and outliers. Codes and zero points fill words of four
// bytes.
Bytes weight_bytes(const WeightFormat& format, std::int64_t out, std::int64_t in, std::int64_t matrices = 1);
// Returns the format that products in a precision read if nothing else is said: that of the precision, or wide.
WeightFormat format_of_precision(Precision precision);
// Returns whether a product in a precision reads the codes as they are, so that nothing has to be dequantised.
bool reads_codes(const WeightFormat& format, Precision precision);
// The format in words: "int4, groups of 128, zero points".
std::string text_of(const WeightFormat& format);

}  // namespace orrery
