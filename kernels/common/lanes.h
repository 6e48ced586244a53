#pragma once

#include <algorithm>
#include <cstdint>

namespace orrery::kernels {

// The number of partial results of a sum or maximum, which are joined at the end in a fixed order. A compiler may keep
// the partial results in vector registers without reassociating, so the final result has the same bits with every
// compiler.
constexpr std::int64_t kLanes = 8;

template <class T, class Join>
T join_lanes(const T (&lane)[kLanes], Join join) {
  return join(join(join(lane[0], lane[4]), join(lane[2], lane[6])),
              join(join(lane[1], lane[5]), join(lane[3], lane[7])));
}

// Computes the sum term(0) + ... + term(n - 1), added as type T.
template <class T, class Term>
T sum(std::int64_t n, Term term) {
  T lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lane[l] += term(i + l);
  }
  for (std::int64_t l = 0; i + l < n; ++l) lane[l] += term(i + l);
  return join_lanes(lane, [](T a, T b) { return a + b; });
}

// Computes the largest of `at_least` and x[0 .. n).
inline float maximum(std::int64_t n, const float* x, float at_least) {
  float lane[kLanes];
  std::fill(lane, lane + kLanes, at_least);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lane[l] = lane[l] < x[i + l] ? x[i + l] : lane[l];
  }
  for (std::int64_t l = 0; i + l < n; ++l) lane[l] = std::max(lane[l], x[i + l]);
  return join_lanes(lane, [](float a, float b) { return std::max(a, b); });
}

}  // namespace orrery::kernels
