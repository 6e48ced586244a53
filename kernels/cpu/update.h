#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/bf16.h"

namespace orrery::kernels {

// The rule of an optimizer's step. adamw: weights first shrink by learning_rate * weight_decay (Loshchilov and Hutter
// 2019, arXiv:1711.05101); adam and sgd: the decay is added to the gradient. Moments are corrected for their start at
// zero (Kingma and Ba 2015, algorithm 1). SGD has no momentum.
struct UpdateRule {
  enum class Kind : std::uint8_t { adamw, adam, sgd };
  Kind kind = Kind::adamw;
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // the values in the Adam paper
  double weight_decay = 0;
};

// The values that change from step to step: the step's number, from 1, and the factor for the gradients.
struct UpdateStep {
  std::int64_t number = 1;
  double gradient_factor = 1;
};

// The constants of one step, as loops over elements use them: the same on a CPU and on a GPU.
struct UpdateConstants {
  double gradient_factor;
  float shrink, decay, rate;
  float beta1, beta2, rest1, rest2;
  float root_correction, epsilon;  // 1 / sqrt(1 - beta2^t)
};

inline UpdateConstants constants_of(const UpdateRule& rule, UpdateStep step) {
  const auto t = static_cast<double>(step.number);
  const bool adamw = rule.kind == UpdateRule::Kind::adamw, sgd = rule.kind == UpdateRule::Kind::sgd;
  const auto f = [](double x) { return static_cast<float>(x); };
  return {.gradient_factor = step.gradient_factor,
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

// The factor that clips the norm of all gradients to `limit`: min(1, limit / (norm + 1e-6)), as PyTorch's
// clip_grad_norm_.
double clip_factor(double squared_norm, double limit);

// Whether gradients with this norm are clipped, or not finite.
bool is_clipped(double squared_norm, double limit);

// Makes an update. weights are the fp32 weights, moments null for SGD. forward, where not null, receives the weights
// that the next forward reads: a copy, rounded if narrower.
template <class Gradient, class Forward>
void update(const UpdateRule& rule, UpdateStep step, std::int64_t n, const Gradient* gradient, float* weights,
            float* moment1, float* moment2, Forward* forward);

// Undoes the update with step number `number`, given the same gradients (Qi et al. 2024, arXiv 2401.10241, appendix C):
// weights and moments are as before except for rounding; the moments before the first update are zero.
template <class Gradient, class Forward>
void undo_update(const UpdateRule& rule, std::int64_t number, std::int64_t n, const Gradient* gradient, float* weights,
                 float* moment1, float* moment2, Forward* forward);

}  // namespace orrery::kernels
