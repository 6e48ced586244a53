// CPU kernels for norms of rows whose columns are split over several ranks.
#include <cmath>
#include <vector>

#include "kernels/common/lanes.h"
#include "kernels/cpu/norm.h"

namespace orrery::kernels {
namespace {

float mean_of(NormStatistics s, std::int64_t row) { return s.mean == nullptr ? 0 : s.mean[row]; }

}  // namespace

void norm_sums(Matrix<const float> x, NormStatistics sums) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    sums.reciprocal[r] = sum<float>(x.columns, [in](std::int64_t i) { return in[i] * in[i]; });
    if (sums.mean != nullptr) sums.mean[r] = sum<float>(x.columns, [in](std::int64_t i) { return in[i]; });
  }
}

void norm_from_sums(Matrix<const float> x, std::int64_t columns, const float* weight, const float* bias, float epsilon,
                    Matrix<float> y, NormStatistics saved) {
  const float share = 1 / static_cast<float>(columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    if (saved.mean != nullptr) saved.mean[r] *= share;
    const float mean = mean_of(saved, r);
    saved.reciprocal[r] = 1 / std::sqrt(share * saved.reciprocal[r] - mean * mean + epsilon);
    const float *in = x.row(r), reciprocal = saved.reciprocal[r];
    float* out = y.row(r);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      out[i] = (in[i] - mean) * reciprocal * weight[i] + (bias == nullptr ? 0 : bias[i]);
    }
  }
}

void norm_gradient_sums(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                        NormStatistics sums, float* dweight, float* dbias) {
  std::vector<double> of_weight(static_cast<std::size_t>(x.columns)), of_bias(static_cast<std::size_t>(x.columns));
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float *in = x.row(r), *g = dy.row(r), mean = mean_of(saved, r), reciprocal = saved.reciprocal[r];
    sums.reciprocal[r] =
        sum<float>(x.columns, [=](std::int64_t i) { return g[i] * weight[i] * ((in[i] - mean) * reciprocal); });
    if (sums.mean != nullptr) sums.mean[r] = sum<float>(x.columns, [=](std::int64_t i) { return g[i] * weight[i]; });
    for (std::int64_t i = 0; i < x.columns; ++i) {
      of_weight[static_cast<std::size_t>(i)] += g[i] * ((in[i] - mean) * reciprocal);
      of_bias[static_cast<std::size_t>(i)] += g[i];
    }
  }
  for (std::int64_t i = 0; i < x.columns; ++i) {
    dweight[i] = static_cast<float>(dweight[i] + of_weight[static_cast<std::size_t>(i)]);
    if (dbias != nullptr) dbias[i] = static_cast<float>(dbias[i] + of_bias[static_cast<std::size_t>(i)]);
  }
}

void norm_gradient_from_sums(Matrix<const float> x, std::int64_t columns, NormStatistics saved, Matrix<const float> dy,
                             const float* weight, NormStatistics sums, Matrix<float> dx) {
  const float share = 1 / static_cast<float>(columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float *in = x.row(r), *g = dy.row(r), mean = mean_of(saved, r), reciprocal = saved.reciprocal[r];
    const float along = share * sums.reciprocal[r], level = share * mean_of(sums, r);
    float* out = dx.row(r);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      out[i] = reciprocal * (g[i] * weight[i] - level - (in[i] - mean) * reciprocal * along);
    }
  }
}

}  // namespace orrery::kernels
