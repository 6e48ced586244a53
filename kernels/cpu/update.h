#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/float16.h"

namespace orrery::kernels {

// The rule of an optimizer's step. adamw: weights are first reduced by learning_rate * weight_decay (Loshchilov and
// Hutter 2019, arXiv:1711.05101); adam and sgd: the decay is added to the gradient. Moments have Adam's bias correction
// (Kingma and Ba 2015, algorithm 1). SGD has no momentum. lion: the step is the sign of the gradient mixed with its
// moment (Chen et al. 2023, 2302.06675, algorithm 2), with adamw's decay. muon: layers' matrices by muon.h, the other
// weights by adamw. adafactor: adafactor.h.
struct UpdateRule {
  enum class Kind : std::uint8_t { adamw, adam, sgd, lion, muon, adafactor };
  Kind kind = Kind::adamw;
  // Adam's learning rate, decay rates of the moments and epsilon, by default those of the Adam paper.
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double square_epsilon = 1e-30;  // Adafactor's epsilon_1, is added to the square of each gradient (1804.04235)
  double momentum = 0.95;  // Muon's: the default of Jordan's implementation (github.com/KellerJordan/Muon, muon.py)
};

// The values that change from step to step: the step's number, counted from 1, and the factor for the gradients.
struct UpdateStep {
  std::int64_t number = 1;
  double gradient_factor = 1;
};

// Constants that are computed once per optimizer step and then used for every weight; CPU and GPU use the same ones.
struct UpdateConstants {
  double gradient_factor;
  float shrink, decay, rate;
  float beta1, beta2, rest1, rest2;
  float root_correction, epsilon;  // root_correction: bias correction 1 / sqrt(1 - beta2^t) of the second moment
};

inline UpdateConstants constants_of(const UpdateRule& rule, UpdateStep step) {
  const auto t = static_cast<double>(step.number);
  const bool lion = rule.kind == UpdateRule::Kind::lion, sgd = rule.kind == UpdateRule::Kind::sgd || lion;
  const bool adamw = rule.kind != UpdateRule::Kind::adam && rule.kind != UpdateRule::Kind::sgd;
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

// Returns the factor that clips the norm of all gradients to `limit`: min(1, limit / (norm + 1e-6)), as in PyTorch's
// clip_grad_norm_.
double clip_factor(double squared_norm, double limit);

// Returns whether the gradients would be clipped, or their norm is not finite.
bool is_clipped(double squared_norm, double limit);

// Makes an optimizer step. weights are the fp32 weights. moment1 and moment2 are null for SGD, and moment2 is null for
// Lion. forward, if not null, receives the weights that the next forward pass reads: a copy, rounded if it has fewer
// bits.
template <class Gradient, class Forward>
void update(const UpdateRule& rule, UpdateStep step, std::int64_t n, const Gradient* gradient, float* weights,
            float* moment1, float* moment2, Forward* forward);

// Undoes the optimizer step number `number`, given the same gradients (Qi et al. 2024, arXiv 2401.10241, appendix C):
// weights and moments become what they were before the step, except for rounding; the moments before the first step are
// zero.
template <class Gradient, class Forward>
void undo_update(const UpdateRule& rule, std::int64_t number, std::int64_t n, const Gradient* gradient, float* weights,
                 float* moment1, float* moment2, Forward* forward);

}  // namespace orrery::kernels
