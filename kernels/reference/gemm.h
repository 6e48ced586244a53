#pragma once

#include "kernels/common/matrix.h"

// Reference implementation of kernels/cpu/gemm.h, one element at a time, for any floating-point type.
namespace orrery::kernels::reference {

template <class T>
void linear(Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t o = 0; o < y.columns; ++o) {
      T sum = bias == nullptr ? T{0} : bias[o];
      for (std::int64_t i = 0; i < x.columns; ++i) sum += x.row(r)[i] * weight.row(o)[i];
      y.row(r)[o] = sum;
    }
  }
}

template <class T>
void linear_input_gradient(Matrix<const T> dy, Matrix<const T> weight, Matrix<T> dx) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    for (std::int64_t i = 0; i < dx.columns; ++i) {
      T sum = 0;
      for (std::int64_t o = 0; o < dy.columns; ++o) sum += dy.row(r)[o] * weight.row(o)[i];
      dx.row(r)[i] = sum;
    }
  }
}

template <class T>
void linear_weight_gradient(Matrix<const T> dy, Matrix<const T> x, bool accumulate, Matrix<T> dweight) {
  for (std::int64_t o = 0; o < dweight.rows; ++o) {
    for (std::int64_t i = 0; i < dweight.columns; ++i) {
      T sum = accumulate ? dweight.row(o)[i] : T{0};
      for (std::int64_t r = 0; r < x.rows; ++r) sum += dy.row(r)[o] * x.row(r)[i];
      dweight.row(o)[i] = sum;
    }
  }
}

// Computes weights(sample, head, query, key) = scale times the sum over d of a(sample, head, query, d) b(sample, key
// head, key, d).
template <class T>
void head_scores(Heads<const T> a, Heads<const T> b, T scale, T* weights) {
  for (std::int64_t s = 0; s < a.batch; ++s) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      for (std::int64_t q = 0; q < a.rows; ++q) {
        for (std::int64_t k = 0; k < b.rows; ++k) {
          T sum = 0;
          for (std::int64_t d = 0; d < a.head_dim; ++d) {
            sum += a.of(s, h).row(q)[d] * b.of(s, h * b.heads / a.heads).row(k)[d];
          }
          *weights++ = scale * sum;
        }
      }
    }
  }
}

template <class T>
void head_values(const T* weights, Heads<const T> b, T scale, Heads<T> y) {
  for (std::int64_t s = 0; s < y.batch; ++s) {
    for (std::int64_t h = 0; h < y.heads; ++h) {
      for (std::int64_t q = 0; q < y.rows; ++q, weights += b.rows) {
        for (std::int64_t d = 0; d < y.head_dim; ++d) {
          T sum = 0;
          for (std::int64_t k = 0; k < b.rows; ++k) sum += weights[k] * b.of(s, h * b.heads / y.heads).row(k)[d];
          y.of(s, h).row(q)[d] = scale * sum;
        }
      }
    }
  }
}

template <class T>
void head_key_gradient(const T* weights, Heads<const T> a, T scale, Heads<T> g) {
  for (std::int64_t s = 0; s < a.batch; ++s) {
    for (std::int64_t h = 0; h < a.heads; ++h, weights += a.rows * g.rows) {
      const Matrix<T> to = g.of(s, h * g.heads / a.heads);
      for (std::int64_t k = 0; k < g.rows; ++k) {
        for (std::int64_t d = 0; d < a.head_dim; ++d) {
          T sum = 0;
          for (std::int64_t q = 0; q < a.rows; ++q) sum += weights[q * g.rows + k] * a.of(s, h).row(q)[d];
          to.row(k)[d] = scale * sum + (h % (a.heads / g.heads) == 0 ? T{0} : to.row(k)[d]);
        }
      }
    }
  }
}

}  // namespace orrery::kernels::reference
