#include "kernels/cpu/activation.h"

#include <cmath>

#include "kernels/common/exponential.h"

namespace orrery::kernels {
namespace {

constexpr float kRootHalf = 0.707106781F;       // 1 / sqrt(2)
constexpr float kNormalDensity = 0.398942280F;  // density of the standard normal distribution at 0: 1 / sqrt(2 pi)

float logistic(float z) { return 1 / (1 + exponential(-z)); }
float normal_share(float z) { return 0.5F * (1 + std::erf(z * kRootHalf)); }

}  // namespace

void swiglu(Matrix<const float> x, Matrix<float> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float *gate = x.row(r), *up = gate + y.columns;
    float* out = y.row(r);
    // There are two loops, because in a single loop g++ 12 computes the product for both outcomes of each clamp in
    // exponential() and then picks one. For a number beyond a clamp, the outcome that is not picked is a denormal
    // number, and multiplying by that takes ten times as long as the rest of the loop.
    for (std::int64_t i = 0; i < y.columns; ++i) out[i] = logistic(gate[i]);
    for (std::int64_t i = 0; i < y.columns; ++i) out[i] = gate[i] * out[i] * up[i];
  }
}

void swiglu_gradient(Matrix<const float> x, Matrix<const float> dy, Matrix<float> dx) {
  const std::int64_t columns = dy.columns;
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float *gate = x.row(r), *up = gate + columns, *g = dy.row(r);
    float *dgate = dx.row(r), *dup = dgate + columns;
    for (std::int64_t i = 0; i < columns; ++i) {
      const float z = gate[i], s = logistic(z), u = up[i];
      dup[i] = g[i] * z * s;
      dgate[i] = g[i] * u * s * (1 + z * (1 - s));
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
