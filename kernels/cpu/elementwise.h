#pragma once

#include "kernels/common/bf16.h"
#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Sums, copies and conversions of flat arrays. `Stored` types are float and Bf16; arithmetic is in float.

// y = a + b; y may be a or b.
void add(std::int64_t n, const float* a, const float* b, float* y);

// to += from
template <class From, class To>
void accumulate(std::int64_t n, const From* from, To* to);

// to = from, row by row.
void copy(Matrix<const float> from, Matrix<float> to);

// to = from, rounded to nearest even where it is narrower.
template <class From, class To>
void cast(std::int64_t n, const From* from, To* to);

template <class Stored>
void fill(std::int64_t n, float value, Stored* to);

// The sum of squares, in double.
template <class Stored>
double squared_norm(std::int64_t n, const Stored* x);

// dbias(columns) += the sum of dy over its rows, which is formed in double.
void bias_gradient(Matrix<const float> dy, float* dbias);

}  // namespace orrery::kernels
