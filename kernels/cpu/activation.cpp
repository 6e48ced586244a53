#include "kernels/cpu/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/exponential.h"

namespace orrery::kernels {
namespace {

constexpr float kRootHalf = 0.707106781F;       // 1 / sqrt(2)
constexpr float kNormalDensity = 0.398942280F;  // density of the standard normal distribution at 0: 1 / sqrt(2 pi)

float logistic(float z) { return 1 / (1 + exponential(-z)); }
float normal_share(float z) { return 0.5F * (1 + std::erf(z * kRootHalf)); }

// Writes the rows' columns with gates and ups within their bounds, gates first.
void clamp_row(const float* x, std::int64_t columns, float limit, float* clamped) {
  for (std::int64_t i = 0; i < columns; ++i) clamped[i] = std::min(x[i], limit);
  for (std::int64_t i = columns; i < 2 * columns; ++i) clamped[i] = std::clamp(x[i], -limit, limit);
}

}  // namespace

void swiglu(Matrix<const float> x, Matrix<float> y, float limit) {
  std::vector<float> clamped(limit > 0 ? static_cast<std::size_t>(2 * y.columns) : 0);
  for (std::int64_t r = 0; r < y.rows; ++r) {
    if (limit > 0) clamp_row(x.row(r), y.columns, limit, clamped.data());
    const float *gate = limit > 0 ? clamped.data() : x.row(r), *up = gate + y.columns;
    float* out = y.row(r);
    // There are two loops, because in a single loop g++ 12 computes the product for both outcomes of each clamp in
    // exponential() and then picks one. For a number beyond a clamp, the outcome that is not picked is a denormal
    // number, and multiplying by that takes ten times as long as the rest of the loop.
    for (std::int64_t i = 0; i < y.columns; ++i) out[i] = logistic(gate[i]);
    for (std::int64_t i = 0; i < y.columns; ++i) out[i] = gate[i] * out[i] * up[i];
  }
}

void swiglu_gradient(Matrix<const float> x, Matrix<const float> dy, Matrix<float> dx, float limit) {
  const std::int64_t columns = dy.columns;
  const float most = limit > 0 ? limit : std::numeric_limits<float>::infinity();
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float *gate = x.row(r), *up = gate + columns, *g = dy.row(r);
    float *dgate = dx.row(r), *dup = dgate + columns;
    for (std::int64_t i = 0; i < columns; ++i) {
      const float z = std::min(gate[i], most), s = logistic(z), u = std::clamp(up[i], -most, most);
      const bool beyond_gate = gate[i] > most, beyond_up = std::abs(up[i]) > most;
      dup[i] = beyond_up ? 0 : g[i] * z * s;
      dgate[i] = beyond_gate ? 0 : g[i] * u * s * (1 + z * (1 - s));
    }
  }
}

void gelu(Matrix<const float> x, const float* bias, Matrix<float> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float* in = x.row(r);
    float* out = y.row(r);
    for (std::int64_t i = 0; i < y.columns; ++i) {
      const float z = in[i] + (bias == nullptr ? 0.0F : bias[i]);
      out[i] = z * normal_share(z);
    }
  }
}

void gelu_gradient(Matrix<const float> x, const float* bias, Matrix<const float> dy, Matrix<float> dx) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float *in = x.row(r), *g = dy.row(r);
    float* out = dx.row(r);
    for (std::int64_t i = 0; i < dy.columns; ++i) {
      const float z = in[i] + (bias == nullptr ? 0.0F : bias[i]);
      out[i] = g[i] * (normal_share(z) + z * kNormalDensity * exponential(-0.5F * z * z));
    }
  }
}

}  // namespace orrery::kernels
