#include "kernels/cpu/rotary.h"

#include <cmath>

namespace orrery::kernels {

RotaryTable rotary_table(std::int64_t positions, std::int64_t head_dim, double theta) {
  RotaryTable table = {head_dim / 2, {}, {}};
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < table.half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
      const double angle = static_cast<double>(p) * std::pow(theta, exponent);
      table.cosine.push_back(static_cast<float>(std::cos(angle)));
      table.sine.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

static void rotate_head(const float* cosine, const float* sine, float sign, std::int64_t half, float* x) {
  float* y = x + half;
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = y[i], s = sign * sine[i];
    x[i] = a * cosine[i] - b * s;
    y[i] = b * cosine[i] + a * s;
  }
}

void rotate(const RotaryTable& table, Positions positions, bool back, Matrix<float> x) {
  const float sign = back ? -1.0F : 1.0F;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const std::int64_t at = (positions.first + r % positions.rows_per_sample) * table.half;
    for (std::int64_t c = 0; c < x.columns; c += 2 * table.half) {
      rotate_head(table.cosine.data() + at, table.sine.data() + at, sign, table.half, x.row(r) + c);
    }
  }
}

}  // namespace orrery::kernels
