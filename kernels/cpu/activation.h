#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Computes SwiGLU: y = silu(gate) * up with silu(z) = z / (1 + exp(-z)). A row of x (rows, 2 * columns) holds all
// gates, then all ups; under tensor parallelism, only this rank's gates and ups. limit > 0: gates are taken as at most
// `limit`, ups as at most that and at least -limit, and the gradient of what is beyond is 0 (gpt-oss: swiglu_limit). dx
// may be x.
void swiglu(Matrix<const float> x, Matrix<float> y, float limit = 0);
void swiglu_gradient(Matrix<const float> x, Matrix<const float> dy, Matrix<float> dx, float limit = 0);

// Computes GeLU of x + bias: z Phi(z), exact, where Phi is the normal distribution function; not the tanh
// approximation. bias has one element per column; null for none. The gradient of bias is the sum of dx over its rows
// (elementwise.h). dx may be x.
void gelu(Matrix<const float> x, const float* bias, Matrix<float> y);
void gelu_gradient(Matrix<const float> x, const float* bias, Matrix<const float> dy, Matrix<float> dx);

}  // namespace orrery::kernels
