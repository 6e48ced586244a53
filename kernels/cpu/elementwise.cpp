#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/lanes.h"

namespace orrery::kernels {

void add(std::int64_t n, const float* a, const float* b, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

template <class From, class To>
void accumulate(std::int64_t n, const From* from, To* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = stored_as<To>(to_float(to[i]) + to_float(from[i]));
}

template <class From, class To>
void cast(std::int64_t n, const From* from, To* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = stored_as<To>(to_float(from[i]));
}

void copy(Matrix<const float> from, Matrix<float> to) {
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.columns, to.row(r));
}

template <class Stored>
void fill(std::int64_t n, float value, Stored* to) {
  std::fill_n(to, n, stored_as<Stored>(value));
}

template <class Stored>
double squared_norm(std::int64_t n, const Stored* x) {
  return sum<double>(n, [x](std::int64_t i) {
    const auto value = static_cast<double>(to_float(x[i]));
    return value * value;
  });
}

template <class Stored>
bool has_infinity(std::int64_t n, const Stored* x) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(to_float(x[i]))) return true;
  }
  return false;
}

void bias_gradient(Matrix<const float> dy, float* dbias) {
  std::vector<double> total(dy.columns);
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float* row = dy.row(r);
    for (std::int64_t c = 0; c < dy.columns; ++c) total[c] += static_cast<double>(row[c]);
  }
  for (std::int64_t c = 0; c < dy.columns; ++c) dbias[c] = static_cast<float>(dbias[c] + total[c]);
}

// Template instantiations for float, for the two 16-bit formats, and for conversions between float and each of these.
#define ORRERY_OF_PAIR(From, To)                            \
  template void accumulate(std::int64_t, const From*, To*); \
  template void cast(std::int64_t, const From*, To*);
#define ORRERY_OF_TYPE(Stored)                               \
  template void fill(std::int64_t, float, Stored*);          \
  template double squared_norm(std::int64_t, const Stored*); \
  template bool has_infinity(std::int64_t, const Stored*);   \
  ORRERY_OF_PAIR(Stored, Stored)
ORRERY_OF_TYPE(float)
ORRERY_OF_TYPE(Bf16)
ORRERY_OF_TYPE(Fp16)
ORRERY_OF_PAIR(float, Bf16)
ORRERY_OF_PAIR(Bf16, float)
ORRERY_OF_PAIR(float, Fp16)
ORRERY_OF_PAIR(Fp16, float)

}  // namespace orrery::kernels
