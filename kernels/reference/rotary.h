#pragma once

#include <cmath>

#include "kernels/cpu/rotary.h"

// Reference implementation of kernels/cpu/rotary.h, without a table of cosines and sines, for any floating-point type.
namespace orrery::kernels::reference {

template <class T>
void rotate(std::int64_t head_dim, double theta, Positions positions, bool back, Matrix<T> x) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const std::int64_t i = c % head_dim;
      if (i >= head_dim / 2) continue;
      const auto position = static_cast<double>(positions.first + r % positions.rows_per_sample);
      const double turn = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      const double angle = (back ? -1 : 1) * position * turn;
      T &a = x.row(r)[c], &b = x.row(r)[c + head_dim / 2];
      const double before = static_cast<double>(a), pair = static_cast<double>(b);
      a = static_cast<T>(before * std::cos(angle) - pair * std::sin(angle));
      b = static_cast<T>(before * std::sin(angle) + pair * std::cos(angle));
    }
  }
}

}  // namespace orrery::kernels::reference
