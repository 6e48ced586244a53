#pragma once

#include <cmath>
#include <vector>

#include "kernels/reference/cross_entropy.h"

// Reference implementations of the losses that read two models, over the whole vocabulary at once, for any
// floating-point type.
namespace orrery::kernels::reference {

// Returns hard * CE + soft * T^2 * KL(teacher || student) of one row of `n` logits, with logits divided by T in KL.
template <class T>
T distillation(const T* student, const T* teacher, std::int64_t n, std::int64_t label, T temperature, T soft, T hard) {
  std::vector<T> s(student, student + n), t(teacher, teacher + n);
  for (T& x : s) x /= temperature;
  for (T& x : t) x /= temperature;
  const T of_student = log_sum_exp(s.data(), n), of_teacher = log_sum_exp(t.data(), n);
  T divergence = 0;
  for (std::int64_t i = 0; i < n; ++i)
    divergence += std::exp(t[i] - of_teacher) * ((t[i] - of_teacher) - (s[i] - of_student));
  return hard * (log_sum_exp(student, n) - student[label]) + soft * temperature * temperature * divergence;
}

// Returns `weight` times the mean squared difference of one row of `n` hidden states from a teacher's.
template <class T>
T mean_square(const T* student, const T* teacher, std::int64_t n, T weight) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += (student[i] - teacher[i]) * (student[i] - teacher[i]);
  return weight * sum / static_cast<T>(n);
}

// Returns the loss of direct preference optimization of a pair, from the log-probabilities of the chosen and of the
// rejected sample by the policy and by the reference.
template <class T>
T preference(T chosen, T rejected, T reference_chosen, T reference_rejected, T beta) {
  return -std::log(1 / (1 + std::exp(-beta * ((chosen - reference_chosen) - (rejected - reference_rejected)))));
}

}  // namespace orrery::kernels::reference
