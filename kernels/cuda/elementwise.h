#pragma once

#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/elementwise.h, and a few for which the executor has no CPU kernel. Types may differ
// between tensors unless stated otherwise.

// y = a + b, all of one type; y may be a or b.
void add(std::int64_t n, ConstArray a, ConstArray b, Array y, cudaStream_t stream);

// to += from; to = max(to, from)
void accumulate(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);
void accumulate_maximum(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);

void cast(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);
// to(rows, columns) = from, transposed(columns, rows) = from^T
void cast_transpose(ConstMatrix from, Matrix to, Matrix transposed, cudaStream_t stream);

void fill(std::int64_t n, float value, Array to, cudaStream_t stream);

// *total += the sum of squares, in double and in a fixed order.
std::int64_t squared_norm_workspace();
void add_squared_norm(std::int64_t n, ConstArray x, double* total, Workspace workspace, cudaStream_t stream);
// *to = *total, or *to += *total.
void store_sum(const double* total, bool adds, float* to, cudaStream_t stream);

// A factor for a tensor: value, divided by *loss_scale, times the clip coefficient of update.h for the squared norm at
// *squared_norm. Null pointers are left out. The pointers are read when the kernel runs.
struct Factor {
  double value = 1;
  const float* loss_scale = nullptr;
  const float* squared_norm = nullptr;
  double limit = 0;
};

// y = factor x, in place or not; *not_finite, where not null, becomes 1 if any x is infinite or not a number.
void multiply(std::int64_t n, Factor factor, ConstArray x, Array y, int* not_finite, cudaStream_t stream);

// x = cap tanh(x / cap); gradient *= 1 - (y / cap)^2, y being what forward left.
void soft_cap(std::int64_t n, double cap, Array x, cudaStream_t stream);
void soft_cap_gradient(std::int64_t n, double cap, ConstArray y, Array gradient, cudaStream_t stream);

// dbias(columns) += the sum of dy over its rows, in a fixed order.
std::int64_t bias_gradient_workspace(std::int64_t rows, std::int64_t columns);
void bias_gradient(ConstMatrix dy, Array dbias, Workspace workspace, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
