#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Computes SwiGLU: y = silu(gate) * up with silu(z) = z / (1 + exp(-z)). A row of x (rows, 2 * columns) holds all
// gates, then all ups; under tensor parallelism, only this rank's gates and ups. dx may be x.
void swiglu(Matrix<const float> x, Matrix<float> y);
void swiglu_gradient(Matrix<const float> x, Matrix<const float> dy, Matrix<float> dx);

// Computes GeLU of x + bias: z Phi(z), exact, where Phi is the normal distribution function; not the tanh
// approximation. bias has one element per column; null for none. The gradient of bias is the sum of dx over its rows
// (elementwise.h). dx may be x.
void gelu(Matrix<const float> x, const float* bias, Matrix<float> y);
void gelu_gradient(Matrix<const float> x, const float* bias, Matrix<const float> dy, Matrix<float> dx);

}  // namespace orrery::kernels
