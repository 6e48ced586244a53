#pragma once

#include "kernels/common/matrix.h"

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

// Norms of rows that lie in pieces on several ranks: each rank sums over its piece of every row, the ranks add up these
// sums, and each computes its piece of the result from them. The sums of a row stand where its statistics will; `mean`
// is null for RMS norms. columns: of a whole row.

// Writes the sum of x^2 to `reciprocal` and the sum of x to `mean`.
void norm_sums(Matrix<const float> x, NormStatistics sums);
// Turns the sums in `saved` into statistics; the variance is the mean square less the squared mean. bias may be null.
void norm_from_sums(Matrix<const float> x, std::int64_t columns, const float* weight, const float* bias, float epsilon,
                    Matrix<float> y, NormStatistics saved);
// Writes to `reciprocal` the sum of dy weight z, with z the normalised x, and to `mean` the sum of dy weight. Adds to
// the gradients; dbias may be null.
void norm_gradient_sums(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                        NormStatistics sums, float* dweight, float* dbias);
void norm_gradient_from_sums(Matrix<const float> x, std::int64_t columns, NormStatistics saved, Matrix<const float> dy,
                             const float* weight, NormStatistics sums, Matrix<float> dx);

}  // namespace orrery::kernels
