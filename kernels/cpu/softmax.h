#pragma once

#include "kernels/cpu/attention.h"

namespace orrery::kernels {

// Computes the softmax of each row of a matrix of scores with the causal mask of attention.h. Row r of `scores` belongs
// to query r % queries of a sample and head; columns are keys. Keys to which the query may not attend get probability
// zero. May run in place.
void masked_softmax(Matrix<const float> scores, std::int64_t queries, const CausalMask& mask,
                    Matrix<float> probabilities);

// Turns the gradient of the probabilities into the gradient of the scores, in place. For each row with probabilities p,
// gradient becomes p (gradient - sum over the row of p gradient).
void softmax_gradient(Matrix<const float> probabilities, Matrix<float> gradient);

}  // namespace orrery::kernels
