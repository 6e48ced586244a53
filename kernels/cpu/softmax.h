#pragma once

#include "kernels/cpu/attention.h"

namespace orrery::kernels {

// Softmax of each row of a matrix of scores, masked as in attention.h. Row r of `scores` belongs to query r % queries
// of a sample and head; columns are keys. The probability of keys that a query does not see is zero. May run in place.
void masked_softmax(Matrix<const float> scores, std::int64_t queries, const CausalMask& mask,
                    Matrix<float> probabilities);

// Turns the gradient of the probabilities into that of the scores, in place: gradient = p (gradient - sum of p
// gradient).
void softmax_gradient(Matrix<const float> probabilities, Matrix<float> gradient);

}  // namespace orrery::kernels
