#include "kernels/cpu/norm.h"

#include <cmath>
#include <vector>

#include "kernels/common/lanes.h"

namespace orrery::kernels {
namespace {

float mean_square(const float* x, float shift, std::int64_t n) {
  const auto total = sum<float>(n, [x, shift](std::int64_t i) { return (x[i] - shift) * (x[i] - shift); });
  return total / static_cast<float>(n);
}

// The backward pass of a norm for one row: dx = reciprocal (g - mean(g) - z mean(g z)), with reciprocal = 1 / the row's
// deviation, z the normalised x and g = dy weight. RMS norm has no mean to subtract: `centred` is 0 there, else 1.
// dweight and dbias are summed over rows.
struct RowGradient {
  const float* weight;
  std::int64_t columns;
  float centred;
  std::vector<double> dweight = std::vector<double>(columns);
  std::vector<double> dbias = std::vector<double>(columns);

  void add(const float* x, float mean, float reciprocal, const float* dy, float* dx) {
    const float* w = weight;
    const float share = 1 / static_cast<float>(columns);
    const float along =
        share * sum<float>(columns, [=](std::int64_t i) { return dy[i] * w[i] * ((x[i] - mean) * reciprocal); });
    const float level = centred * share * sum<float>(columns, [=](std::int64_t i) { return dy[i] * w[i]; });
    for (std::int64_t i = 0; i < columns; ++i) {
      const float z = (x[i] - mean) * reciprocal, g = dy[i];
      dweight[i] += g * z;
      dbias[i] += g;
      dx[i] = reciprocal * (g * w[i] - level - z * along);
    }
  }
};

void add_to(float* to, const std::vector<double>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(to[i] + from[i]);
}

}  // namespace

void rms_norm(Matrix<const float> x, const float* weight, float epsilon, Matrix<float> y, NormStatistics saved) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    const float reciprocal = 1 / std::sqrt(mean_square(in, 0, x.columns) + epsilon);
    float* out = y.row(r);
    for (std::int64_t i = 0; i < x.columns; ++i) out[i] = in[i] * reciprocal * weight[i];
    saved.reciprocal[r] = reciprocal;
  }
}

void rms_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                       Matrix<float> dx, float* dweight) {
  RowGradient gradient = {weight, x.columns, 0};
  for (std::int64_t r = 0; r < x.rows; ++r) gradient.add(x.row(r), 0, saved.reciprocal[r], dy.row(r), dx.row(r));
  add_to(dweight, gradient.dweight);
}

void layer_norm(Matrix<const float> x, const float* weight, const float* bias, float epsilon, Matrix<float> y,
                NormStatistics saved) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* in = x.row(r);
    const float mean = sum<float>(x.columns, [in](std::int64_t i) { return in[i]; }) / static_cast<float>(x.columns);
    const float reciprocal = 1 / std::sqrt(mean_square(in, mean, x.columns) + epsilon);
    float* out = y.row(r);
    for (std::int64_t i = 0; i < x.columns; ++i) out[i] = (in[i] - mean) * reciprocal * weight[i] + bias[i];
    saved.reciprocal[r] = reciprocal;
    saved.mean[r] = mean;
  }
}

void layer_norm_gradient(Matrix<const float> x, NormStatistics saved, Matrix<const float> dy, const float* weight,
                         Matrix<float> dx, float* dweight, float* dbias) {
  RowGradient gradient = {weight, x.columns, 1};
  for (std::int64_t r = 0; r < x.rows; ++r) {
    gradient.add(x.row(r), saved.mean[r], saved.reciprocal[r], dy.row(r), dx.row(r));
  }
  add_to(dweight, gradient.dweight);
  add_to(dbias, gradient.dbias);
}

}  // namespace orrery::kernels
