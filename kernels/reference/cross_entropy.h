#pragma once

#include <cmath>

#include "kernels/common/matrix.h"

// Reference implementation of cross-entropy, over the whole vocabulary at once, for any floating-point type.
namespace orrery::kernels::reference {

template <class T>
T log_sum_exp(const T* x, std::int64_t n) {
  T total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += std::exp(x[i]);
  return std::log(total);
}

template <class T>
void cross_entropy(Matrix<const T> logits, const std::int64_t* labels, T* losses) {
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    losses[r] = log_sum_exp(logits.row(r), logits.columns) - logits.row(r)[labels[r]];
  }
}

template <class T>
void cross_entropy_gradient(Matrix<const T> logits, const std::int64_t* labels, T scale, Matrix<T> gradient) {
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const T total = log_sum_exp(logits.row(r), logits.columns);
    for (std::int64_t c = 0; c < logits.columns; ++c) {
      gradient.row(r)[c] = scale * (std::exp(logits.row(r)[c] - total) - (labels[r] == c ? 1 : 0));
    }
  }
}

}  // namespace orrery::kernels::reference
