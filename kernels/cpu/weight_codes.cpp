#include "kernels/cpu/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/common/float16.h"
#include "kernels/common/float8.h"

namespace orrery::kernels {
namespace {

std::int64_t words(std::int64_t bits) { return 4 * ((bits + 31) / 32); }
bool is_e2m1(WeightCodes c) { return c == WeightCodes::nvfp4 || c == WeightCodes::mxfp4; }
bool is_e4m3(WeightCodes c) { return c == WeightCodes::fp8 || c == WeightCodes::mxfp8; }
// Whether a scale is a power of two, of which the exponent is stored.
bool has_exponents(WeightCodes c) { return c == WeightCodes::mxfp8 || c == WeightCodes::mxfp4; }
std::int64_t bits_of(WeightCodes c) { return c == WeightCodes::int4 || is_e2m1(c) ? 4 : 8; }
// Returns the bytes of a scale, which are those of models/base/weight_format.cpp.
std::int64_t scale_bytes(WeightCodes c) {
  return c == WeightCodes::int4 ? 2 : c == WeightCodes::nvfp4 || has_exponents(c) ? 1 : 4;
}
constexpr float kLargestE2m1 = 6;
constexpr std::int64_t kNvfp4Numbers = 16;  // that share a scale (models/base/narrow.h)
constexpr std::int64_t kBins = 2048;        // Migacz 2017, slide 22

// The places at which the parts of a stored matrix begin.
struct Parts {
  std::int64_t scales, zeros, wholes, end;

  explicit Parts(const CodedMatrix& m)
      : scales(words(m.out * m.in * bits_of(m.codes))),
        zeros(scales + words(8 * m.groups() * scale_bytes(m.codes))),
        wholes(zeros + (m.zeros ? words(m.groups() * bits_of(m.codes)) : 0)),
        end(wholes + (m.codes == WeightCodes::nvfp4 ? 4 * m.matrices : 0)) {}
};

void put_bits(std::byte* to, std::int64_t index, std::int64_t bits, unsigned code) {
  if (bits == 8) {
    to[index] = static_cast<std::byte>(code);
    return;
  }
  std::byte& at = to[index / 2];
  at = index % 2 == 0 ? static_cast<std::byte>(code & 15U) : at | static_cast<std::byte>((code & 15U) << 4);
}
unsigned bits_at(const std::byte* from, std::int64_t index, std::int64_t bits) {
  if (bits == 8) return static_cast<unsigned>(from[index]);
  const auto both = static_cast<unsigned>(from[index / 2]);
  return index % 2 == 0 ? both & 15U : both >> 4;
}

template <class T>
void put(std::byte* to, std::int64_t index, T value) {
  std::memcpy(to + index * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}
template <class T>
T at(const std::byte* from, std::int64_t index) {
  T value;
  std::memcpy(&value, from + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

// The scale and zero point of a group, as they are stored.
struct Scale {
  float step = 0;
  int zero = 0;
};

// stored: whether the scale is one that is stored, which is rounded to fp16 in int4.
Scale scale_of(const CodedMatrix& m, const WeightRange& range, float whole, bool stored = true) {
  const float largest = range.magnitude();
  switch (m.codes) {
    case WeightCodes::fp8:
      return {largest / kLargestE4m3};
    case WeightCodes::mxfp8:
    case WeightCodes::mxfp4: {
      // The exponent of the largest magnitude less that of the largest number of E4M3, 8, or of E2M1, 2 (OCP
      // specification, 6.3).
      const int most = m.codes == WeightCodes::mxfp8 ? 8 : 2;
      return {largest == 0 ? 0 : std::ldexp(1.0F, std::clamp(std::ilogb(largest) - most, -127, 127))};
    }
    case WeightCodes::nvfp4:
      return {whole == 0 ? 0 : from_e4m3(to_e4m3(largest / kLargestE2m1 / whole)) * whole};
    default:
      break;
  }
  const int most = (1 << bits_of(m.codes)) - 1;
  const float exact = m.zeros ? (range.largest - range.least) / static_cast<float>(most)
                              : largest / static_cast<float>((1 << (bits_of(m.codes) - 1)) - 1);
  const float step = m.codes == WeightCodes::int4 && stored ? to_float(to_fp16(exact)) : exact;
  const float zero = m.zeros && step > 0 ? std::nearbyint(-range.least / step) : 0;
  return {step, static_cast<int>(std::clamp(zero, 0.0F, static_cast<float>(most)))};
}

unsigned code_of(const CodedMatrix& m, float x, const Scale& s) {
  const float quotient = s.step == 0 ? 0 : x / s.step;
  if (is_e4m3(m.codes)) return to_e4m3(quotient);
  if (is_e2m1(m.codes)) return to_e2m1(quotient);
  const int half = 1 << (bits_of(m.codes) - 1), least = m.zeros ? 0 : 1 - half,
            most = m.zeros ? 2 * half - 1 : half - 1;
  const float code = std::nearbyint(quotient) + static_cast<float>(s.zero);
  return static_cast<unsigned>(static_cast<int>(std::clamp(code, static_cast<float>(least), static_cast<float>(most))));
}

float number_of(const CodedMatrix& m, unsigned code, const Scale& s) {
  if (is_e4m3(m.codes)) return from_e4m3(static_cast<std::uint8_t>(code)) * s.step;
  if (is_e2m1(m.codes)) return from_e2m1(static_cast<std::uint8_t>(code)) * s.step;
  const int half = 1 << (bits_of(m.codes) - 1), whole = static_cast<int>(code & static_cast<unsigned>(2 * half - 1));
  const int value = m.zeros ? whole - s.zero : whole >= half ? whole - 2 * half : whole;
  return static_cast<float>(value) * s.step;
}

void put_scale(const CodedMatrix& m, std::byte* to, const Parts& parts, std::int64_t group, const Scale& s,
               float whole) {
  std::byte* scales = to + parts.scales;
  if (m.codes == WeightCodes::int4)
    put(scales, group, to_fp16(s.step).bits);
  else if (m.codes == WeightCodes::nvfp4)
    scales[group] = static_cast<std::byte>(to_e4m3(whole == 0 ? 0 : s.step / whole));
  else if (has_exponents(m.codes))
    scales[group] = static_cast<std::byte>(s.step == 0 ? 0 : std::ilogb(s.step) + 127);
  else
    put(scales, group, s.step);
  if (m.zeros) put_bits(to + parts.zeros, group, bits_of(m.codes), static_cast<unsigned>(s.zero));
}

Scale scale_at(const CodedMatrix& m, const std::byte* from, const Parts& parts, std::int64_t group, float whole) {
  const std::byte* scales = from + parts.scales;
  Scale s;
  if (m.codes == WeightCodes::int4)
    s.step = to_float(Fp16{at<std::uint16_t>(scales, group)});
  else if (m.codes == WeightCodes::nvfp4)
    s.step = from_e4m3(static_cast<std::uint8_t>(scales[group])) * whole;
  else if (has_exponents(m.codes))
    s.step = std::ldexp(1.0F, static_cast<int>(scales[group]) - 127);
  else
    s.step = at<float>(scales, group);
  if (m.zeros) s.zero = static_cast<int>(bits_at(from + parts.zeros, group, bits_of(m.codes)));
  return s;
}

std::int64_t matrix_of(const CodedMatrix& m, std::int64_t row) { return row / (m.out / m.matrices); }

}  // namespace

std::int64_t CodedMatrix::groups() const {
  return group < 0 ? matrices : group == 0 ? out : out * ((in + group - 1) / group);
}

std::int64_t CodedMatrix::group_of(std::int64_t row, std::int64_t column) const {
  return group < 0 ? matrix_of(*this, row) : group == 0 ? row : row * ((in + group - 1) / group) + column / group;
}

std::int64_t CodedMatrix::bytes() const { return Parts(*this).end; }

WeightRanges ranges_of(const CodedMatrix& m, const float* weights) {
  WeightRanges ranges = {std::vector<WeightRange>(static_cast<std::size_t>(m.groups())),
                         std::vector<WeightRange>(static_cast<std::size_t>(m.matrices))};
  for (std::int64_t r = 0; r < m.out; ++r) {
    for (std::int64_t c = 0; c < m.in; ++c) {
      ranges.groups[static_cast<std::size_t>(m.group_of(r, c))].add(weights[r * m.in + c]);
      ranges.matrices[static_cast<std::size_t>(matrix_of(m, r))].add(weights[r * m.in + c]);
    }
  }
  return ranges;
}

void quantize_matrix(const CodedMatrix& m, const float* weights, const WeightRanges& ranges, std::byte* to) {
  const Parts parts(m);
  std::fill(to, to + parts.end, std::byte{0});
  for (std::int64_t r = 0; r < m.out; ++r) {
    const std::int64_t matrix = matrix_of(m, r);
    const float whole = m.codes == WeightCodes::nvfp4 ? ranges.matrices[static_cast<std::size_t>(matrix)].magnitude() /
                                                            (kLargestE4m3 * kLargestE2m1)
                                                      : 0;
    if (m.codes == WeightCodes::nvfp4) put(to + parts.wholes, matrix, whole);
    std::int64_t group = -1;
    Scale scale;
    for (std::int64_t c = 0; c < m.in; ++c) {
      if (const std::int64_t own = m.group_of(r, c); own != group) {
        group = own;
        scale = scale_of(m, ranges.groups[static_cast<std::size_t>(group)], whole);
        put_scale(m, to, parts, group, scale, whole);
      }
      put_bits(to, r * m.in + c, bits_of(m.codes), code_of(m, weights[r * m.in + c], scale));
    }
  }
}

void widen_matrix(const CodedMatrix& m, const std::byte* from, float* weights) {
  const Parts parts(m);
  for (std::int64_t r = 0; r < m.out; ++r) {
    const float whole = m.codes == WeightCodes::nvfp4 ? at<float>(from + parts.wholes, matrix_of(m, r)) : 0;
    std::int64_t group = -1;
    Scale scale;
    for (std::int64_t c = 0; c < m.in; ++c) {
      if (const std::int64_t own = m.group_of(r, c); own != group) {
        group = own;
        scale = scale_at(m, from, parts, group, whole);
      }
      weights[r * m.in + c] = number_of(m, bits_at(from, r * m.in + c, bits_of(m.codes)), scale);
    }
  }
}

void round_matrix(const CodedMatrix& m, const float* from, float* to) {
  for (std::int64_t r = 0; r < m.out; ++r) {
    for (std::int64_t first = 0; first < m.in; first += m.group) {
      const float* x = from + r * m.in + first;
      const std::int64_t count = std::min(m.group, m.in - first);
      WeightRange range;
      for (std::int64_t i = 0; i < count; ++i) range.add(x[i]);
      const Scale scale = scale_of(m, range, 0, false);
      for (std::int64_t i = 0; i < count; ++i)
        to[r * m.in + first + i] = std::isnan(x[i]) ? x[i] : number_of(m, code_of(m, x[i], scale), scale);
    }
  }
}

std::int64_t vector_bytes(int bits, std::int64_t n) { return (n * bits + 7) / 8 + 4; }

void quantize_vector(int bits, std::int64_t n, const float* from, std::byte* to) {
  if (std::any_of(from, from + n, [](float x) { return std::isnan(x); })) {  // all of it is read back as NaN
    put(to + (n * bits + 7) / 8, 0, to_fp16(std::numeric_limits<float>::quiet_NaN()).bits);
    put(to + (n * bits + 7) / 8, 1, to_fp16(0).bits);
    return;
  }
  const auto [least, largest] = std::minmax_element(from, from + n);
  const auto most = static_cast<float>((1 << bits) - 1);
  const Fp16 zero = to_fp16(*least), step = to_fp16((*largest - *least) / most);
  const float base = to_float(zero), unit = to_float(step);
  for (std::int64_t i = 0; i < n; ++i) {
    const float code = unit == 0 ? 0 : std::clamp(std::nearbyint((from[i] - base) / unit), 0.0F, most);
    put_bits(to, i, bits, static_cast<unsigned>(code));
  }
  put(to + (n * bits + 7) / 8, 0, zero.bits);
  put(to + (n * bits + 7) / 8, 1, step.bits);
}

void widen_vector(int bits, std::int64_t n, const std::byte* from, float* to) {
  const std::byte* scales = from + (n * bits + 7) / 8;
  const float base = to_float(Fp16{at<std::uint16_t>(scales, 0)}), unit = to_float(Fp16{at<std::uint16_t>(scales, 1)});
  for (std::int64_t i = 0; i < n; ++i) to[i] = base + static_cast<float>(bits_at(from, i, bits)) * unit;
}

void quantize_nvfp4(std::int64_t n, const float* from, std::byte* to) {
  for (std::int64_t begin = 0; begin < n; begin += kNvfp4Numbers) {
    const std::int64_t end = std::min(n, begin + kNvfp4Numbers);
    float largest = 0;
    for (std::int64_t i = begin; i < end; ++i)
      largest = std::isnan(from[i]) || std::isnan(largest) ? std::numeric_limits<float>::quiet_NaN()
                                                           : std::max(largest, std::abs(from[i]));
    const std::uint8_t scale = to_e4m3(largest / kLargestE2m1);
    const float step = from_e4m3(scale);
    for (std::int64_t i = begin; i < end; ++i) put_bits(to, i, 4, step > 0 ? to_e2m1(from[i] / step) : 0U);
    to[(n + 1) / 2 + begin / kNvfp4Numbers] = static_cast<std::byte>(scale);
  }
}

void widen_nvfp4(std::int64_t n, const std::byte* from, float* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float step = from_e4m3(static_cast<std::uint8_t>(from[(n + 1) / 2 + i / kNvfp4Numbers]));
    to[i] = std::isnan(step) ? step : from_e2m1(static_cast<std::uint8_t>(bits_at(from, i, 4))) * step;
  }
}

double clipped_divergence(const std::vector<double>& histogram, std::int64_t kept, std::int64_t levels) {
  std::vector<double> p(histogram.begin(), histogram.begin() + kept);
  p.back() += std::accumulate(histogram.begin() + kept, histogram.end(), 0.0);
  const double all = std::accumulate(p.begin(), p.end(), 0.0);
  double sum = 0, inside = std::accumulate(histogram.begin(), histogram.begin() + kept, 0.0);
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::int64_t first = level * kept / levels, end = (level + 1) * kept / levels;
    double count = 0, filled = 0;
    for (std::int64_t b = first; b < end; ++b) {
      count += histogram[static_cast<std::size_t>(b)];
      filled += p[static_cast<std::size_t>(b)] > 0 ? 1 : 0;
    }
    for (std::int64_t b = first; b < end; ++b) {
      const double share = p[static_cast<std::size_t>(b)] / all;
      if (share == 0) continue;
      if (count == 0) return std::numeric_limits<double>::infinity();
      sum += share * std::log(share / (count / filled / inside));
    }
  }
  return sum;
}

float least_divergence(const std::vector<float>& numbers, int bits) {
  float largest = 0;
  for (const float x : numbers) largest = std::max(largest, std::abs(x));
  if (largest == 0 || static_cast<std::int64_t>(numbers.size()) < kBins) return largest;
  std::vector<double> histogram(kBins);
  for (const float x : numbers) {
    const auto bin = static_cast<std::int64_t>(std::abs(x) / largest * kBins);
    histogram[static_cast<std::size_t>(std::min(bin, kBins - 1))] += 1;
  }
  const std::int64_t levels = std::int64_t{1} << (bits - 1);
  std::int64_t best = kBins;
  double least = clipped_divergence(histogram, kBins, levels);
  for (std::int64_t kept = kBins - 1; kept >= levels; --kept) {
    const double divergence = clipped_divergence(histogram, kept, levels);
    if (divergence < least) {
      least = divergence;
      best = kept;
    }
  }
  return largest * static_cast<float>(best) / kBins;
}

}  // namespace orrery::kernels
