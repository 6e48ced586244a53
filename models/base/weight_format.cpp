#include "models/base/weight_format.h"

#include <cmath>

#include <fmt/format.h>

namespace orrery {
namespace {

// Names, bits of a code, and bytes of a scale. Scales are fp32 numbers where they are few (one a row or a matrix), and
// fp16 numbers in groups of 4-bit weights, as AutoGPTQ and AutoAWQ store them (qlinear modules: scales in float16).
struct CodeRow {
  std::string_view name;
  std::int64_t bits;
  Bytes scale;
};
constexpr CodeRow kCodes[] = {{"none", 16, 0}, {"fp8", 8, 4},   {"int8", 8, 4},  {"int4", 4, 2},
                              {"int3", 3, 2},  {"nvfp4", 4, 1}, {"mxfp8", 8, 1}, {"mxfp4", 4, 1}};
const CodeRow& row_of(WeightCode code) { return kCodes[static_cast<std::size_t>(code)]; }

constexpr std::int64_t kWordBits = 32;
Bytes words_of(std::int64_t codes, std::int64_t bits) { return 4 * ceil_div(codes * bits, kWordBits); }

// Bits of a scale or zero point in SpQR, and bytes of the four numbers by which a group of them is scaled and shifted
// (Dettmers et al. 2023, 2306.03078, sections 4.3 and 5: 3-bit statistics in groups of 16).
constexpr std::int64_t kStatisticBits = 3;
constexpr Bytes kStatisticScales = 8;

}  // namespace

std::string_view name_of(WeightCode code) { return row_of(code).name; }
std::int64_t code_bits(WeightCode code) { return row_of(code).bits; }

std::int64_t scales_of(const WeightFormat& f, std::int64_t out, std::int64_t in, std::int64_t matrices) {
  if (f.group == kTensorGroup) return matrices;
  return f.group == kChannelGroup ? out : out * ceil_div(in, f.group);
}

Bytes weight_bytes(const WeightFormat& f, std::int64_t out, std::int64_t in, std::int64_t matrices) {
  const std::int64_t n = out * in, scales = scales_of(f, out, in, matrices);
  Bytes bytes = words_of(n, code_bits(f.code));
  if (f.scale_group > 0) {
    const std::int64_t kinds = f.zeros ? 2 : 1;  // scales, and zero points
    bytes += words_of(kinds * scales, kStatisticBits) + kinds * kStatisticScales / 2 * ceil_div(scales, f.scale_group);
  } else {
    bytes += 4 * ceil_div(scales * row_of(f.code).scale, 4) + (f.zeros ? words_of(scales, code_bits(f.code)) : 0);
  }
  if (f.code == WeightCode::nvfp4) bytes += 4 * matrices;  // the fp32 scale of the blocks' scales
  // An outlier has a number of 16 bits and its column; a row of the matrix has the number of outliers before it.
  if (f.outliers > 0) bytes += 4 * (n * f.outliers / 1'000'000 + out);
  return bytes;
}

WeightFormat format_of_precision(Precision precision) {
  switch (precision) {
    case Precision::fp8:
      return {.code = WeightCode::fp8};
    case Precision::int8:
      return {.code = WeightCode::int8, .group = kChannelGroup};
    case Precision::mxfp8:
      return {.code = WeightCode::mxfp8, .group = 32};
    case Precision::nvfp4:
      return {.code = WeightCode::nvfp4, .group = 16};
    default:
      return {};
  }
}

bool reads_codes(const WeightFormat& format, Precision precision) {
  // Blackwell's tensor cores multiply E2M1 by E4M3 where both have a power of two as the scale of 32 (PTX ISA,
  // tcgen05.mma, kind mxf8f6f4).
  const bool mixed = format.code == WeightCode::mxfp4 && precision == Precision::mxfp8;
  return !format.narrow() || mixed || format.code == format_of_precision(precision).code;
}

std::string text_of(const WeightFormat& f) {
  if (!f.narrow()) return "wide";
  std::string text = fmt::format("{}, a scale {}", name_of(f.code),
                                 f.group == kTensorGroup    ? "a matrix"
                                 : f.group == kChannelGroup ? "an output"
                                                            : fmt::format("for {} weights", f.group));
  if (f.zeros) text += ", zero points";
  if (f.outliers > 0) text += fmt::format(", {:g} % outliers", static_cast<double>(f.outliers) * 1e-4);
  return text;
}

}  // namespace orrery
