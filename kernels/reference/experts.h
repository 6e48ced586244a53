#pragma once

#include <cmath>
#include <vector>

#include "kernels/cpu/experts.h"

// Reference implementation of an MoE router for any floating-point type. It computes the weights of given choices of
// experts, and the auxiliary loss, from the router's logits.
namespace orrery::kernels::reference {

template <class T>
std::vector<T> scores(const std::vector<T>& logits, std::int64_t tokens, const GateShape& s) {
  std::vector<T> y(logits.size());
  for (std::int64_t t = 0; t < tokens; ++t) {
    T sum = 0;
    for (std::int64_t e = 0; e < s.experts; ++e) sum += std::exp(logits[t * s.experts + e]);
    for (std::int64_t e = 0; e < s.experts; ++e) {
      const T x = logits[t * s.experts + e];
      y[t * s.experts + e] = s.sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x) / sum;
    }
  }
  return y;
}

// Returns one array: for every choice of a token the weight of the chosen expert (zero if the choice is dropped), then,
// as the last element, the auxiliary loss times the number of tokens.
template <class T>
std::vector<T> weights_and_loss(const std::vector<T>& logits, const GateShape& s,
                                const std::vector<std::int32_t>& experts, const std::vector<std::int32_t>& places) {
  const std::int64_t choices = static_cast<std::int64_t>(experts.size()), tokens = choices / s.top_k;
  const std::vector<T> p = scores(logits, tokens, s);
  std::vector<T> result;
  for (std::int64_t c = 0; c < choices; ++c) {
    T sum = 0;
    for (std::int64_t j = 0; j < s.top_k; ++j) sum += p[c / s.top_k * s.experts + experts[c / s.top_k * s.top_k + j]];
    const T own = p[c / s.top_k * s.experts + experts[c]];
    result.push_back(places[c] < 0 ? 0 : s.top_k == 1 ? own : own / sum);
  }
  T loss = 0;
  for (std::int64_t e = 0; e < s.experts; ++e) {
    T part = 0, sum_of_scores = 0;
    for (std::int64_t c = 0; c < choices; ++c) part += experts[c] == e ? 1 : 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      T sum = 0;
      for (std::int64_t i = 0; i < s.experts; ++i) sum += p[t * s.experts + i];
      sum_of_scores += p[t * s.experts + e] / sum;
    }
    loss += s.aux_loss * static_cast<double>(s.experts) * part / static_cast<double>(choices) * sum_of_scores;
  }
  result.push_back(loss);
  return result;
}

}  // namespace orrery::kernels::reference
