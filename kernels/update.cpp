#include "kernels/update.h"

#include <algorithm>
#include <cmath>

namespace orrery::kernels {
namespace {

// The rule's constants for one step, as the loops need them.
struct Constants {
  float factor, shrink, decay, rate;
  float beta1, beta2, rest1, rest2;
  float root_correction, epsilon;  // 1 / sqrt(1 - beta2^t)
};

Constants constants_of(const UpdateRule& rule, UpdateStep step) {
  const auto t = static_cast<double>(step.number);
  const bool adamw = rule.kind == UpdateRule::Kind::adamw, sgd = rule.kind == UpdateRule::Kind::sgd;
  const auto f = [](double x) { return static_cast<float>(x); };
  return {.factor = f(step.gradient_factor),
          .shrink = f(adamw ? 1 - rule.learning_rate * rule.weight_decay : 1),
          .decay = f(adamw ? 0 : rule.weight_decay),
          .rate = f(sgd ? rule.learning_rate : rule.learning_rate / (1 - std::pow(rule.beta1, t))),
          .beta1 = f(rule.beta1),
          .beta2 = f(rule.beta2),
          .rest1 = f(1 - rule.beta1),
          .rest2 = f(1 - rule.beta2),
          .root_correction = f(1 / std::sqrt(1 - std::pow(rule.beta2, t))),
          .epsilon = f(rule.epsilon)};
}

template <class Gradient>
void descend(const Constants& c, std::int64_t n, const Gradient* gradient, float* weights) {
  for (std::int64_t i = 0; i < n; ++i) {
    weights[i] -= c.rate * (to_float(gradient[i]) * c.factor + c.decay * weights[i]);
  }
}

template <class Gradient>
void adam(const Constants& c, std::int64_t n, const Gradient* gradient, float* weights, float* moment1,
          float* moment2) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_float(gradient[i]) * c.factor + c.decay * weights[i];
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
  const Constants c = constants_of(rule, step);
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
