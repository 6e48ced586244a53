#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// RMS and layer norm over the columns of every row. The forward pass saves two numbers of each row for the backward
// pass: the reciprocal deviation and, for layer norm, the mean. Norms of heads (qk_norm) are computed as norms of views
// of head_dim columns, head by head. The backward pass writes dx, which may be dy, and adds to the gradients of weight
// and bias.

struct NormStatistics {
  // 1 / sqrt(variance + epsilon) of each row; for RMS norm, the mean square takes the place of the variance
  float* reciprocal = nullptr;
  float* mean = nullptr;  // mean of each row; null for RMS norm
};

// Computes y = weight * x / sqrt(mean(x^2) + epsilon) for each row.
void rms_norm(Matrix<const float> x, const float* weight, float epsilon, Matrix<float> y, NormStatistics saved);
void rms_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                       Matrix<float> dx, float* dweight);

// Computes y = weight * (x - mean) / sqrt(variance + epsilon) + bias, with the mean and the variance of each row of x.
void layer_norm(Matrix<const float> x, const float* weight, const float* bias, float epsilon, Matrix<float> y,
                NormStatistics saved);
void layer_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                         Matrix<float> dx, float* dweight, float* dbias);

// Norms of rows whose columns are split over several ranks: each rank sums over its columns of every row, the ranks
// all-reduce these sums, and each rank computes its columns of the result from the totals. The sums of a row are stored
// in place of its statistics; `mean` is null for RMS norm. columns: number of columns of a complete row, over all
// ranks.

// Sums each row over this rank's columns: writes the sum of x^2 to `reciprocal` and the sum of x to `mean`, which
// norm_from_sums() later replaces by the statistics.
void norm_sums(Matrix<const float> x, NormStatistics sums);
// Computes a rank's columns of the norm from the sums in `saved`, which become statistics; the variance is the mean
// square minus the squared mean. bias may be null.
void norm_from_sums(Matrix<const float> x, std::int64_t columns, const float* weight, const float* bias, float epsilon,
                    Matrix<float> y, NormStatistics saved);
// Computes the sums for the backward pass: writes to `reciprocal` the sum of dy weight z, with z the normalised x, and
// to `mean` the sum of dy weight. Adds to the gradients of weight and bias; dbias may be null.
void norm_gradient_sums(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                        NormStatistics sums, float* dweight, float* dbias);
void norm_gradient_from_sums(Matrix<const float> x, std::int64_t columns, NormStatistics saved, Matrix<const float> dy,
                             const float* weight, NormStatistics sums, Matrix<float> dx);

}  // namespace orrery::kernels
