#pragma once

#include <cmath>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/reference/gemm.h"

// Reference implementation of kernels/cpu/attention.h and kernels/cpu/softmax.h with full score matrices, for any
// floating-point type.
namespace orrery::kernels::reference {

template <class T>
void masked_softmax(Matrix<const T> scores, std::int64_t queries, const CausalMask& mask, Matrix<T> probabilities) {
  for (std::int64_t r = 0; r < scores.rows; ++r) {
    const KeyRange seen = visible_keys(mask, r % queries, scores.columns);
    T total = 0;
    for (std::int64_t c = seen.first; c < seen.last; ++c) total += std::exp(scores.row(r)[c]);
    for (std::int64_t c = 0; c < scores.columns; ++c) {
      const bool sees = c >= seen.first && c < seen.last;
      probabilities.row(r)[c] = sees ? std::exp(scores.row(r)[c]) / total : T{0};
    }
  }
}

template <class T>
void softmax_gradient(Matrix<const T> probabilities, Matrix<T> gradient) {
  for (std::int64_t r = 0; r < gradient.rows; ++r) {
    T mean = 0;
    for (std::int64_t c = 0; c < gradient.columns; ++c) mean += probabilities.row(r)[c] * gradient.row(r)[c];
    for (std::int64_t c = 0; c < gradient.columns; ++c) {
      gradient.row(r)[c] = probabilities.row(r)[c] * (gradient.row(r)[c] - mean);
    }
  }
}

// Returns attention probabilities, shape (batch, heads, query, key).
template <class T>
std::vector<T> attention_probabilities(Heads<const T> q, Heads<const T> k, T scale, const CausalMask& mask) {
  std::vector<T> p(q.batch * q.heads * q.rows * k.rows);
  head_scores<T>(q, k, scale, p.data());
  const Matrix<T> rows = matrix(p.data(), q.batch * q.heads * q.rows, k.rows);
  masked_softmax<T>(rows, q.rows, mask, rows);
  return p;
}

template <class T>
void attention(Heads<const T> q, Heads<const T> k, Heads<const T> v, T scale, const CausalMask& mask, Heads<T> out) {
  head_values<T>(attention_probabilities<T>(q, k, scale, mask).data(), v, T{1}, out);
}

template <class T>
void attention_gradient(Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<const T> dout, T scale,
                        const CausalMask& mask, Heads<T> dq, Heads<T> dk, Heads<T> dv) {
  const std::vector<T> p = attention_probabilities<T>(q, k, scale, mask);
  std::vector<T> dp(p.size());
  const std::int64_t rows = q.batch * q.heads * q.rows;
  head_key_gradient<T>(p.data(), dout, T{1}, dv);
  head_scores<T>(dout, v, T{1}, dp.data());
  softmax_gradient<T>(matrix(p.data(), rows, k.rows), matrix(dp.data(), rows, k.rows));
  head_values<T>(dp.data(), k, scale, dq);
  head_key_gradient<T>(dp.data(), q, scale, dk);
}

}  // namespace orrery::kernels::reference
