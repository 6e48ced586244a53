#pragma once

#include <cmath>

#include "kernels/common/matrix.h"

// Reference implementation of kernels/cpu/norm.h, one row at a time, for any floating-point type. The backward pass
// computes the statistics of each row again. A null bias means RMS norm, else layer norm.
namespace orrery::kernels::reference {

template <class T>
struct RowStatistics {
  T mean = 0, reciprocal = 0;
};

template <class T>
RowStatistics<T> row_statistics(const T* x, std::int64_t columns, T epsilon, bool centred) {
  RowStatistics<T> s;
  for (std::int64_t i = 0; centred && i < columns; ++i) s.mean += x[i] / static_cast<T>(columns);
  T square = 0;
  for (std::int64_t i = 0; i < columns; ++i) square += (x[i] - s.mean) * (x[i] - s.mean) / static_cast<T>(columns);
  s.reciprocal = 1 / std::sqrt(square + epsilon);
  return s;
}

template <class T>
void norm(Matrix<const T> x, const T* weight, const T* bias, T epsilon, Matrix<T> y) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto s = row_statistics<T>(x.row(r), x.columns, epsilon, bias != nullptr);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      y.row(r)[i] = (x.row(r)[i] - s.mean) * s.reciprocal * weight[i] + (bias == nullptr ? T{0} : bias[i]);
    }
  }
}

// Computes the gradients of a norm. dbias is null for RMS norm.
template <class T>
void norm_gradient(Matrix<const T> x, Matrix<const T> dy, const T* weight, T epsilon, Matrix<T> dx, T* dweight,
                   T* dbias) {
  const auto n = static_cast<T>(x.columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto s = row_statistics<T>(x.row(r), x.columns, epsilon, dbias != nullptr);
    const auto z = [&](std::int64_t i) { return (x.row(r)[i] - s.mean) * s.reciprocal; };
    T level = 0, along = 0;
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const T g = dy.row(r)[i] * weight[i];
      if (dbias != nullptr) level += g / n;
      along += g * z(i) / n;
      dweight[i] += dy.row(r)[i] * z(i);
      if (dbias != nullptr) dbias[i] += dy.row(r)[i];
    }
    for (std::int64_t i = 0; i < x.columns; ++i) {
      dx.row(r)[i] = s.reciprocal * (dy.row(r)[i] * weight[i] - level - z(i) * along);
    }
  }
}

}  // namespace orrery::kernels::reference
