#pragma once

#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/elementwise.h on a GPU, and a few without a CPU version. Types may differ between
// tensors unless stated otherwise.

// Computes y = a + b, all of one type; y may be a or b.
void add(std::int64_t n, ConstArray a, ConstArray b, Array y, cudaStream_t stream);

// accumulate(): computes to += from; accumulate_maximum(): computes to = max(to, from)
void accumulate(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);
void accumulate_maximum(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);

void cast(std::int64_t n, ConstArray from, Array to, cudaStream_t stream);
// Converts a matrix to another type and also writes the transpose of the result: to(rows, columns) = from,
// transposed(columns, rows) = from^T.
void cast_transpose(ConstMatrix from, Matrix to, Matrix transposed, cudaStream_t stream);

void fill(std::int64_t n, float value, Array to, cudaStream_t stream);

// Adds the sum of the squares of x's elements to *total, in double and in a fixed order.
std::int64_t squared_norm_workspace();
void add_squared_norm(std::int64_t n, ConstArray x, double* total, Workspace workspace, cudaStream_t stream);
// Stores a total: *to = *total, or with `adds` *to += *total.
void store_sum(const double* total, bool adds, float* to, cudaStream_t stream);

// A factor for a tensor: value / *loss_scale * the clip coefficient (update.h) for the squared norm at *squared_norm. A
// term whose pointer is null is left out. The pointers are read on the device when the kernel runs.
struct Factor {
  double value = 1;
  const float* loss_scale = nullptr;
  const float* squared_norm = nullptr;
  double limit = 0;
};

// Computes y = factor x, where y may be x. *not_finite, if not null, becomes 1 if any element of x is infinite or not a
// number.
void multiply(std::int64_t n, Factor factor, ConstArray x, Array y, int* not_finite, cudaStream_t stream);

// Soft-capping of logits. soft_cap() computes x = cap tanh(x / cap); soft_cap_gradient() computes gradient *= 1 - (y /
// cap)^2, where y is the result of soft_cap().
void soft_cap(std::int64_t n, double cap, Array x, cudaStream_t stream);
void soft_cap_gradient(std::int64_t n, double cap, ConstArray y, Array gradient, cudaStream_t stream);

// Adds to dbias(columns) the sum of dy over its rows, in a fixed order.
std::int64_t bias_gradient_workspace(std::int64_t rows, std::int64_t columns);
void bias_gradient(ConstMatrix dy, Array dbias, Workspace workspace, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
