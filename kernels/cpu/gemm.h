#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Matrix products, computed by OpenBLAS. Every view may be strided; results must not overlap inputs. OpenBLAS adds in
// an order that depends on the CPU and on its number of threads, so results have the same bits only on the same machine
// with one thread.

// Sets OpenBLAS to one thread, for the whole process: call this once, first thing in main. (The environment variable
// OPENBLAS_NUM_THREADS=1 also keeps OpenBLAS from starting its other threads.)
void products_on_one_thread();

// Computes y(rows, out) = x(rows, in) W(out, in)^T + bias(out); bias may be null.
void linear(Matrix<const float> x, Matrix<const float> weight, const float* bias, Matrix<float> y);

// Computes dx(rows, in) = dy(rows, out) W(out, in).
void linear_input_gradient(Matrix<const float> dy, Matrix<const float> weight, Matrix<float> dx);

// Computes dW(out, in) = dy(rows, out)^T x(rows, in), or with `accumulate` adds it to dW.
void linear_weight_gradient(Matrix<const float> dy, Matrix<const float> x, bool accumulate, Matrix<float> dweight);

// The matrix products of unfused attention, for every sample and head. `weights` is (batch, heads, query, key),
// contiguous in memory: scores, probabilities or their gradients. There may be fewer key heads than query heads
// (grouped-query attention): query head h uses key head h / (heads / kv_heads).

// Computes weights = scale a(query) b(key)^T for every sample and head. The weights are attention scores if a is q and
// b is k; they are the gradient of the probabilities if a is dy and b is v.
void head_scores(Heads<const float> a, Heads<const float> b, float scale, float* weights);

// Computes y(query) = scale weights b(key) for every sample and head: attention's output if b is v, or the gradient of
// the queries if b is k.
void head_values(const float* weights, Heads<const float> b, float scale, Heads<float> y);

// Computes g(key) = scale weights^T a(query), summed over the query heads that share a key head: the gradient of the
// values if a is dy, or the gradient of the keys if a is q.
void head_key_gradient(const float* weights, Heads<const float> a, float scale, Heads<float> g);

// multiply(), which the other functions of this file call, computes C = alpha op(A) op(B) + beta C, where op transposes
// its matrix if `transposed` says so. C is not read if beta is zero.
struct Transposed {
  bool a = false, b = false;
};
void multiply(Transposed transposed, float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
              Matrix<float> c);

}  // namespace orrery::kernels
