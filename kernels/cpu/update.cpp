#include "kernels/cpu/update.h"

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

template <class Gradient>
void lion(const UpdateConstants& c, std::int64_t n, const Gradient* gradient, float* weights, float* moment) {
  const auto factor = static_cast<float>(c.gradient_factor);
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_float(gradient[i]) * factor;
    const float direction = c.beta1 * moment[i] + c.rest1 * g;
    moment[i] = c.beta2 * moment[i] + c.rest2 * g;
    const auto sign = static_cast<float>((direction > 0) - (direction < 0));
    weights[i] = c.shrink * weights[i] - c.rate * sign;
  }
}

// Undoes an SGD step. The undo functions compute in double precision, so that weights and moments differ from those
// before the step by no more than rounding errors.
template <class Gradient>
void undo_descend(const UpdateConstants& c, std::int64_t n, const Gradient* gradient, float* weights) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = to_float(gradient[i]);
    weights[i] = static_cast<float>((weights[i] + c.rate * g) / (1 - double{c.rate} * c.decay));
  }
}

template <class Gradient>
void undo_adam(const UpdateConstants& c, bool first, std::int64_t n, const Gradient* gradient, float* weights,
               float* moment1, float* moment2) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double m = moment1[i], v = moment2[i];
    const double w = (weights[i] + c.rate * m / (std::sqrt(v) * c.root_correction + c.epsilon)) / c.shrink;
    const double g = to_float(gradient[i]) + c.decay * w;
    weights[i] = static_cast<float>(w);
    moment1[i] = first ? 0 : static_cast<float>((m - c.rest1 * g) / c.beta1);
    moment2[i] = first ? 0 : static_cast<float>(std::max(0.0, (v - c.rest2 * (g * g)) / c.beta2));
  }
}

// Copies weights, rounded if needed, to the buffer that the forward pass reads.
template <class Forward>
void copy_forward(std::int64_t n, const float* weights, Forward* forward) {
  if (forward == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) forward[i] = stored_as<Forward>(weights[i]);
}

}  // namespace

double clip_factor(double squared_norm, double limit) {
  return std::min(1.0, limit / (std::sqrt(squared_norm) + 1e-6));
}

bool is_clipped(double squared_norm, double limit) {
  return !std::isfinite(squared_norm) || clip_factor(squared_norm, limit) < 1;
}

template <class Gradient, class Forward>
void update(const UpdateRule& rule, UpdateStep step, std::int64_t n, const Gradient* gradient, float* weights,
            float* moment1, float* moment2, Forward* forward) {
  const UpdateConstants c = constants_of(rule, step);
  if (rule.kind == UpdateRule::Kind::sgd) {
    descend(c, n, gradient, weights);
  } else if (rule.kind == UpdateRule::Kind::lion) {
    lion(c, n, gradient, weights, moment1);
  } else {
    adam(c, n, gradient, weights, moment1, moment2);
  }
  copy_forward(n, weights, forward);
}

template <class Gradient, class Forward>
void undo_update(const UpdateRule& rule, std::int64_t number, std::int64_t n, const Gradient* gradient, float* weights,
                 float* moment1, float* moment2, Forward* forward) {
  const UpdateConstants c = constants_of(rule, {number, 1});
  if (rule.kind == UpdateRule::Kind::sgd) {
    undo_descend(c, n, gradient, weights);
  } else {
    undo_adam(c, number == 1, n, gradient, weights, moment1, moment2);
  }
  copy_forward(n, weights, forward);
}

#define ORRERY_UPDATE(Gradient, Forward)                                                                            \
  template void update(const UpdateRule&, UpdateStep, std::int64_t, const Gradient*, float*, float*, float*,        \
                       Forward*);                                                                                   \
  template void undo_update(const UpdateRule&, std::int64_t, std::int64_t, const Gradient*, float*, float*, float*, \
                            Forward*);
ORRERY_UPDATE(float, float)
ORRERY_UPDATE(float, Bf16)
ORRERY_UPDATE(Bf16, float)
ORRERY_UPDATE(Bf16, Bf16)
ORRERY_UPDATE(float, Fp16)
ORRERY_UPDATE(Fp16, float)
ORRERY_UPDATE(Fp16, Fp16)

}  // namespace orrery::kernels
