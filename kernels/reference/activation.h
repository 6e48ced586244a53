#pragma once

#include <cmath>
#include <numbers>

#include "kernels/common/matrix.h"

// Reference implementation of kernels/cpu/activation.h for any floating-point type.
namespace orrery::kernels::reference {

template <class T>
void swiglu(Matrix<const T> x, Matrix<T> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t c = 0; c < y.columns; ++c) {
      const T gate = x.row(r)[c];
      y.row(r)[c] = gate / (1 + std::exp(-gate)) * x.row(r)[c + y.columns];
    }
  }
}

template <class T>
void swiglu_gradient(Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      const T gate = x.row(r)[c], up = x.row(r)[c + dy.columns], g = dy.row(r)[c];
      const T e = std::exp(-gate);
      dx.row(r)[c] = g * up * (1 + e + gate * e) / ((1 + e) * (1 + e));
      dx.row(r)[c + dy.columns] = g * gate / (1 + e);
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
