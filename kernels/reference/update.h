#pragma once

#include <cmath>

#include "kernels/cpu/update.h"

// Reference implementation of kernels/cpu/update.h for one weight, in any floating-point type.
namespace orrery::kernels::reference {

template <class T>
struct WeightState {
  T weight = 0, moment1 = 0, moment2 = 0;
};

template <class T>
WeightState<T> update(const UpdateRule& rule, UpdateStep step, T gradient, WeightState<T> s) {
  const T rate = static_cast<T>(rule.learning_rate), decay = static_cast<T>(rule.weight_decay);
  T g = gradient * static_cast<T>(step.gradient_factor);
  if (rule.kind != UpdateRule::Kind::adamw) g += decay * s.weight;
  if (rule.kind == UpdateRule::Kind::sgd) return {s.weight - rate * g, s.moment1, s.moment2};
  if (rule.kind == UpdateRule::Kind::adamw) s.weight -= rate * decay * s.weight;
  const T beta1 = static_cast<T>(rule.beta1), beta2 = static_cast<T>(rule.beta2);
  s.moment1 = beta1 * s.moment1 + (1 - beta1) * g;
  s.moment2 = beta2 * s.moment2 + (1 - beta2) * g * g;
  const T mean = s.moment1 / (1 - std::pow(beta1, static_cast<T>(step.number)));
  const T square = s.moment2 / (1 - std::pow(beta2, static_cast<T>(step.number)));
  s.weight -= rate * mean / (std::sqrt(square) + static_cast<T>(rule.epsilon));
  return s;
}

}  // namespace orrery::kernels::reference
