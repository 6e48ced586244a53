#include "kernels/cpu/eight_bit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery::kernels {
namespace {

constexpr int kExponents = 7;  // powers of ten from 10^-6 to 1

std::array<float, 256> make_values(MomentSign sign) {
  std::vector<double> values = {0, 1};
  const int more = sign == MomentSign::positive ? 1 : 0;  // bits of the fraction that a sign would take
  for (int e = 0; e < kExponents; ++e) {
    const int fractions = 1 << (e + more);
    for (int i = 0; i < fractions; ++i) {
      const double value = std::pow(10.0, e - (kExponents - 1)) * (0.1 + 0.9 * (i + 0.5) / fractions);
      values.push_back(value);
      if (sign == MomentSign::either) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  std::array<float, 256> result{};
  std::transform(values.begin(), values.end(), result.begin(), [](double v) { return static_cast<float>(v); });
  return result;
}

// Returns the index of the value that is nearest to x; of two that are equally near, the lower one. The search has no
// branches, whose outcomes no processor could foresee.
std::uint8_t nearest(const std::array<float, 256>& values, float x) {
  unsigned above = 0;  // number of the first 255 values that are below x
  for (unsigned step = 128; step > 0; step /= 2) above += values[above + step - 1] < x ? step : 0;
  const unsigned below = above - (above > 0 ? 1 : 0);
  return static_cast<std::uint8_t>(x - values[below] <= values[above] - x ? below : above);
}

}  // namespace

const std::array<float, 256>& moment_values(MomentSign sign) {
  static const std::array<float, 256> either = make_values(MomentSign::either);
  static const std::array<float, 256> positive = make_values(MomentSign::positive);
  return sign == MomentSign::either ? either : positive;
}

void widen_moments(MomentSign sign, std::int64_t block, std::int64_t n, const std::uint8_t* bytes, const float* scales,
                   float* to) {
  const std::array<float, 256>& values = moment_values(sign);
  for (std::int64_t i = 0; i < n; ++i) to[i] = values[bytes[i]] * scales[i / block];
}

void narrow_moments(MomentSign sign, std::int64_t block, std::int64_t n, const float* from, std::uint8_t* bytes,
                    float* scales) {
  const std::array<float, 256>& values = moment_values(sign);
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t end = std::min(first + block, n);
    float scale = 0;
    for (std::int64_t i = first; i < end; ++i) scale = std::max(scale, std::abs(from[i]));
    scales[first / block] = scale;
    for (std::int64_t i = first; i < end; ++i) bytes[i] = nearest(values, scale == 0 ? 0 : from[i] / scale);
  }
}

}  // namespace orrery::kernels
