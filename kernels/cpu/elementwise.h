#pragma once

#include "kernels/common/float16.h"
#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Sums, copies and conversions of flat arrays. `Stored` types are float, Bf16 and Fp16; arithmetic is in float.

// Computes y = a + b; y may be a or b.
void add(std::int64_t n, const float* a, const float* b, float* y);

// Adds `from` to `to`, element by element.
template <class From, class To>
void accumulate(std::int64_t n, const From* from, To* to);

// Copies `from` to `to`, row by row.
void copy(Matrix<const float> from, Matrix<float> to);

// Converts elementwise: to = from, rounded to nearest even if `to` has fewer bits.
template <class From, class To>
void cast(std::int64_t n, const From* from, To* to);

template <class Stored>
void fill(std::int64_t n, float value, Stored* to);

// Returns the sum of the squares of x's elements, computed in double.
template <class Stored>
double squared_norm(std::int64_t n, const Stored* x);

// Returns whether any element of x is infinite or NaN.
template <class Stored>
bool has_infinity(std::int64_t n, const Stored* x);

// Adds to dbias(columns) the sum of dy over its rows, which is computed in double.
void bias_gradient(Matrix<const float> dy, float* dbias);

}  // namespace orrery::kernels
