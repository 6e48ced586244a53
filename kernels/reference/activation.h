#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/common/matrix.h"

// Reference implementation of kernels/cpu/activation.h for any floating-point type.
namespace orrery::kernels::reference {

template <class T>
void swiglu(Matrix<const T> x, Matrix<T> y, T limit = 0) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t c = 0; c < y.columns; ++c) {
      const T most = limit > 0 ? limit : std::numeric_limits<T>::infinity();
      const T gate = std::min(x.row(r)[c], most), up = std::clamp(x.row(r)[c + y.columns], -most, most);
      y.row(r)[c] = gate / (1 + std::exp(-gate)) * up;
    }
  }
}

template <class T>
void swiglu_gradient(Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx, T limit = 0) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      const T most = limit > 0 ? limit : std::numeric_limits<T>::infinity(), g = dy.row(r)[c];
      const T given = x.row(r)[c], other = x.row(r)[c + dy.columns];
      const T gate = std::min(given, most), up = std::clamp(other, -most, most), e = std::exp(-gate);
      dx.row(r)[c] = given > most ? 0 : g * up * (1 + e + gate * e) / ((1 + e) * (1 + e));
      dx.row(r)[c + dy.columns] = other > most || other < -most ? 0 : g * gate / (1 + e);
    }
  }
}

template <class T>
void gelu(Matrix<const T> x, const T* bias, Matrix<T> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t c = 0; c < y.columns; ++c) {
      const T z = x.row(r)[c] + (bias == nullptr ? T{0} : bias[c]);
      y.row(r)[c] = z / 2 * (1 + std::erf(z / std::numbers::sqrt2_v<T>));
    }
  }
}

template <class T>
void gelu_gradient(Matrix<const T> x, const T* bias, Matrix<const T> dy, Matrix<T> dx) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      const T z = x.row(r)[c] + (bias == nullptr ? T{0} : bias[c]);
      const T share = (1 + std::erf(z / std::numbers::sqrt2_v<T>)) / 2;
      const T density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
      dx.row(r)[c] = dy.row(r)[c] * (share + z * density);
    }
  }
}

}  // namespace orrery::kernels::reference
