#pragma once

#include <cstdint>

#include "kernels/bf16.h"

namespace orrery::kernels {

// One step of an optimizer. adamw: weights first shrink by learning_rate * weight_decay (Loshchilov and Hutter 2019,
// arXiv:1711.05101); adam and sgd: the decay is added to the gradient. Moments are corrected for their start at zero
// (Kingma and Ba 2015, algorithm 1). SGD has no momentum.
struct UpdateRule {
  enum class Kind : std::uint8_t { adamw, adam, sgd };
  Kind kind = Kind::adamw;
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // the Adam paper's own values
  double weight_decay = 0;
};

// What changes from step to step: which it is, from 1, and what gradients are multiplied by first.
struct UpdateStep {
  std::int64_t number = 1;
  double gradient_factor = 1;
};

// What clips the norm of all gradients to `limit`: min(1, limit / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
double clip_factor(double squared_norm, double limit);

// weights are the fp32 ones, moments null for SGD. forward, where not null, receives what the next forward reads: a
// copy of the weights, rounded if narrower.
template <class Gradient, class Forward>
void update(const UpdateRule& rule, UpdateStep step, std::int64_t n, const Gradient* gradient, float* weights,
            float* moment1, float* moment2, Forward* forward);

}  // namespace orrery::kernels
