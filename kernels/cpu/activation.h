#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// SwiGLU: y = silu(gate) * up, silu(z) = z / (1 + exp(-z)). x is (rows, 2 * columns): in each row all gates, then all
// ups; under tensor parallelism those that belong to the rank. dx may be x.
void swiglu(Matrix<const float> x, Matrix<float> y);
void swiglu_gradient(Matrix<const float> x, Matrix<const float> dy, Matrix<float> dx);

// GeLU of x + bias (columns; null for none), exact: z Phi(z) with the error function, not the tanh approximation. The
// bias's gradient is the sum of dx over its rows (elementwise.h). dx may be x.
void gelu(Matrix<const float> x, const float* bias, Matrix<float> y);
void gelu_gradient(Matrix<const float> x, const float* bias, Matrix<const float> dy, Matrix<float> dx);

}  // namespace orrery::kernels
