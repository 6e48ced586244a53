#pragma once

#include "kernels/cpu/attention.h"

namespace orrery::kernels {

// Softmax of a matrix of scores, masked as in attention.h. Row r of `scores` is the query r % queries of its sample and
// head; columns are keys. Keys that a query does not see get zero. May run in place.
void masked_softmax(Matrix<const float> scores, std::int64_t queries, const CausalMask& mask,
                    Matrix<float> probabilities);

// gradient = p (gradient - sum of p gradient), in place: turns the gradient of the probabilities into that of the
// scores.
void softmax_gradient(Matrix<const float> probabilities, Matrix<float> gradient);

}  // namespace orrery::kernels
