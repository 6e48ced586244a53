#pragma once

#include <cstdint>

#include "kernels/common/matrix.h"
#include "kernels/cpu/cross_entropy.h"

namespace orrery::kernels {

// The greedy choice of the next token: that with the largest logit, of equal logits the lowest. Ranks that hold parts
// of the vocabulary agree by an all-reduce (maximum) of one number a row, a key. Keys are positive finite doubles whose
// order is that of the logits, and among equal logits the reverse order of the tokens.

// Writes keys(rows): the key of each row's best token; 0 if the rank's part of the vocabulary has no token.
void best_tokens(Matrix<const float> logits, VocabularyPart part, double* keys);
// Returns the key of a token with this logit. Tokens are below 2^31.
double token_key(float logit, std::int64_t token);
std::int64_t token_of(double key);

}  // namespace orrery::kernels
