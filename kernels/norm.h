#pragma once

#include "kernels/matrix.h"

namespace orrery::kernels {

// RMS and layer norm over the columns of every row. Forward saves what backward needs: the reciprocal deviation of each
// row and, for layer norm, its mean. Norms of heads (qk_norm) are norms of views of head_dim columns, head by head.
// Backward writes dx, which may be dy, and adds to the gradients of weight and bias.

struct NormStatistics {
  float* reciprocal = nullptr;  // (rows): 1 / sqrt(variance + epsilon), or of the mean square
  float* mean = nullptr;        // (rows), layer norm only
};

// y = weight * x / sqrt(mean(x^2) + epsilon)
void rms_norm(Matrix<const float> x, const float* weight, float epsilon, Matrix<float> y, NormStatistics saved);
void rms_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                       Matrix<float> dx, float* dweight);

// y = weight * (x - mean) / sqrt(variance + epsilon) + bias
void layer_norm(Matrix<const float> x, const float* weight, const float* bias, float epsilon, Matrix<float> y,
                NormStatistics saved);
void layer_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                         Matrix<float> dx, float* dweight, float* dbias);

}  // namespace orrery::kernels
