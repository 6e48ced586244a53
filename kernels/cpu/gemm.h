#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Matrix products, on OpenBLAS. Every view may be strided; results must not overlap inputs. OpenBLAS adds in an order
// that depends on the CPU it finds and on its number of threads, so the same machine and one thread give the same bits.

// OpenBLAS keeps its number of threads for the whole process: call this once, first thing in main. (The variable
// OPENBLAS_NUM_THREADS=1 also keeps it from starting the others.)
void products_on_one_thread();

// y(rows, out) = x(rows, in) W(out, in)^T + bias(out); bias may be null.
void linear(Matrix<const float> x, Matrix<const float> weight, const float* bias, Matrix<float> y);

// dx(rows, in) = dy(rows, out) W(out, in)
void linear_input_gradient(Matrix<const float> dy, Matrix<const float> weight, Matrix<float> dx);

// dW(out, in) = dy(rows, out)^T x(rows, in), or added to dW.
void linear_weight_gradient(Matrix<const float> dy, Matrix<const float> x, bool accumulate, Matrix<float> dweight);

// The products of unfused attention, for every sample and head. `weights` is (batch, heads, query, key), contiguous:
// scores, probabilities or their gradients. Heads over queries number `heads`; heads over keys may be fewer (grouped
// queries): head h uses key head h / (heads / kv_heads).

// weights = scale a(query) b(key)^T: scores from q and k; the probabilities' gradient from dy and v.
void head_scores(Heads<const float> a, Heads<const float> b, float scale, float* weights);

// y(query) = scale weights b(key): the output from v; the query's gradient from k.
void head_values(const float* weights, Heads<const float> b, float scale, Heads<float> y);

// g(key) = scale weights^T a(query), summed over the heads that share a key head: the value's gradient from dy; the
// key's gradient from q.
void head_key_gradient(const float* weights, Heads<const float> a, float scale, Heads<float> g);

// C = alpha op(A) op(B) + beta C: the product that the functions above call. C is not read when beta is zero.
struct Transposed {
  bool a = false, b = false;
};
void multiply(Transposed transposed, float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
              Matrix<float> c);

}  // namespace orrery::kernels
