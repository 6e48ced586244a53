#include "kernels/update.h"

#include <algorithm>
#include <cmath>

namespace orrery::kernels {
namespace {

template <class Gradient>
void descend(const UpdateConstants& c, std::int64_t n, const Gradient* gradient, float* weights) {
  const auto factor = static_cast<float>(c.gradient_factor);
  for (std::int64_t i = 0; i < n; ++i) {
    weights[i] -= c.rate * (to_float(gradient[i]) * factor + c.decay * weights[i]);
  }
}

template <class Gradient>
void adam(const UpdateConstants& c, std::int64_t n, const Gradient* gradient, float* weights, float* moment1,
          float* moment2) {
  const auto factor = static_cast<float>(c.gradient_factor);
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_float(gradient[i]) * factor + c.decay * weights[i];
    const float m = c.beta1 * moment1[i] + c.rest1 * g;
    const float v = c.beta2 * moment2[i] + c.rest2 * (g * g);
    moment1[i] = m;
    moment2[i] = v;
    weights[i] = c.shrink * weights[i] - c.rate * m / (std::sqrt(v) * c.root_correction + c.epsilon);
  }
}

}  // namespace

double clip_factor(double squared_norm, double limit) {
  return std::min(1.0, limit / (std::sqrt(squared_norm) + 1e-6));
}

template <class Gradient, class Forward>
void update(const UpdateRule& rule, UpdateStep step, std::int64_t n, const Gradient* gradient, float* weights,
            float* moment1, float* moment2, Forward* forward) {
  const UpdateConstants c = constants_of(rule, step);
  if (rule.kind == UpdateRule::Kind::sgd) {
    descend(c, n, gradient, weights);
  } else {
    adam(c, n, gradient, weights, moment1, moment2);
  }
  if (forward == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) forward[i] = stored_as<Forward>(weights[i]);
}

template void update(const UpdateRule&, UpdateStep, std::int64_t, const float*, float*, float*, float*, float*);
template void update(const UpdateRule&, UpdateStep, std::int64_t, const float*, float*, float*, float*, Bf16*);
template void update(const UpdateRule&, UpdateStep, std::int64_t, const Bf16*, float*, float*, float*, float*);
template void update(const UpdateRule&, UpdateStep, std::int64_t, const Bf16*, float*, float*, float*, Bf16*);

}  // namespace orrery::kernels
