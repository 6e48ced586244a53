#include "kernels/cpu/gemm.h"

#include <cassert>
#include <limits>

#include <cblas.h>

namespace orrery::kernels {
namespace {

blasint narrow(std::int64_t x) {
  assert(x >= 0 && x <= std::numeric_limits<blasint>::max());
  return static_cast<blasint>(x);
}

Matrix<const float> weights_of(const float* weights, std::int64_t index, std::int64_t query, std::int64_t key) {
  return matrix(weights + index * query * key, query, key);
}

}  // namespace

void products_on_one_thread() { openblas_set_num_threads(1); }

void multiply(Transposed transposed, float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
              Matrix<float> c) {
  const std::int64_t inner = transposed.a ? a.rows : a.columns;
  assert((transposed.b ? b.columns : b.rows) == inner);
  assert((transposed.a ? a.columns : a.rows) == c.rows && (transposed.b ? b.rows : b.columns) == c.columns);
  if (c.rows == 0 || c.columns == 0) return;
  cblas_sgemm(CblasRowMajor, transposed.a ? CblasTrans : CblasNoTrans, transposed.b ? CblasTrans : CblasNoTrans,
              narrow(c.rows), narrow(c.columns), narrow(inner), alpha, a.data, narrow(a.stride), b.data,
              narrow(b.stride), beta, c.data, narrow(c.stride));
}

void linear(Matrix<const float> x, Matrix<const float> weight, const float* bias, Matrix<float> y) {
  multiply({.b = true}, 1, x, weight, 0, y);
  if (bias == nullptr) return;
  for (std::int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c) row[c] += bias[c];
  }
}

void linear_input_gradient(Matrix<const float> dy, Matrix<const float> weight, Matrix<float> dx) {
  multiply({}, 1, dy, weight, 0, dx);
}

void linear_weight_gradient(Matrix<const float> dy, Matrix<const float> x, bool accumulate, Matrix<float> dweight) {
  multiply({.a = true}, 1, dy, x, accumulate ? 1.0F : 0.0F, dweight);
}

void head_scores(Heads<const float> a, Heads<const float> b, float scale, float* weights) {
  const std::int64_t group = a.heads / b.heads;
  for (std::int64_t s = 0; s < a.batch; ++s) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      float* result = weights + (s * a.heads + h) * a.rows * b.rows;
      multiply({.b = true}, scale, a.of(s, h), b.of(s, h / group), 0, matrix(result, a.rows, b.rows));
    }
  }
}

void head_values(const float* weights, Heads<const float> b, float scale, Heads<float> y) {
  const std::int64_t group = y.heads / b.heads;
  for (std::int64_t s = 0; s < y.batch; ++s) {
    for (std::int64_t h = 0; h < y.heads; ++h) {
      const auto w = weights_of(weights, s * y.heads + h, y.rows, b.rows);
      multiply({}, scale, w, b.of(s, h / group), 0, y.of(s, h));
    }
  }
}

void head_key_gradient(const float* weights, Heads<const float> a, float scale, Heads<float> g) {
  const std::int64_t group = a.heads / g.heads;
  for (std::int64_t s = 0; s < a.batch; ++s) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const auto w = weights_of(weights, s * a.heads + h, a.rows, g.rows);
      multiply({.a = true}, scale, w, a.of(s, h), h % group == 0 ? 0.0F : 1.0F, g.of(s, h / group));
    }
  }
}

}  // namespace orrery::kernels
