#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Matrix products, computed by OpenBLAS. Every view may be strided; results must not overlap inputs. OpenBLAS adds in
// an order that depends on the CPU and on its number of threads, so results have the same bits only on the same machine
// with one thread.

// Sets OpenBLAS to one thread, for the whole process: call this once, first thing in main. (The environment variable
// OPENBLAS_NUM_THREADS=1 also keeps OpenBLAS from starting its other threads.)
void products_on_one_thread();

// y(rows, out) = x(rows, in) W(out, in)^T + bias(out); bias may be null.
void linear(Matrix<const float> x, Matrix<const float> weight, const float* bias, Matrix<float> y);

// Computes dx(rows, in) = dy(rows, out) W(out, in).
void linear_input_gradient(Matrix<const float> dy, Matrix<const float> weight, Matrix<float> dx);

// dW(out, in) = dy(rows, out)^T x(rows, in), or with `accumulate` added to dW.
void linear_weight_gradient(Matrix<const float> dy, Matrix<const float> x, bool accumulate, Matrix<float> dweight);

// The matrix products of unfused attention, for every sample and head. `weights` is (batch, heads, query, key),
// contiguous in memory: scores, probabilities or their gradients. There may be fewer key heads than query heads
// (grouped-query attention): query head h uses key head h / (heads / kv_heads).

// weights = scale a(query) b(key)^T: the scores, from q and k; or the probabilities' gradient, from dy and v.
void head_scores(Heads<const float> a, Heads<const float> b, float scale, float* weights);

// y(query) = scale weights b(key): the output, from v; or the query's gradient, from k.
void head_values(const float* weights, Heads<const float> b, float scale, Heads<float> y);

// g(key) = scale weights^T a(query), summed over the query heads that share a key head: the value's gradient, from dy;
// or the key's gradient, from q.
void head_key_gradient(const float* weights, Heads<const float> a, float scale, Heads<float> g);

// C = alpha op(A) op(B) + beta C, the product on which the functions above are built. C is not read if beta is zero.
struct Transposed {
  bool a = false, b = false;
};
void multiply(Transposed transposed, float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
              Matrix<float> c);

}  // namespace orrery::kernels
