#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The steps of cross-entropy over logits (rows, columns) of one rank's part of the vocabulary. Between the steps the
// ranks that hold the parts reduce the values of each row: the maxima by maximum, sums and label logits by addition.
// Padding columns, past the vocabulary's end, take no part: their gradient is zero.
struct VocabularyPart {
  std::int64_t first = 0;       // token of column 0
  std::int64_t vocabulary = 0;  // tokens in the whole vocabulary

  // The number of a rank's columns that are tokens, not padding.
  std::int64_t tokens_of(std::int64_t columns) const;
};

// Writes maxima(rows); -infinity where the part holds no token.
void row_maxima(Matrix<const float> logits, VocabularyPart part, float* maxima);

// Replaces logits by exp(logit - maximum), in place, and writes sums(rows) of these exponentials and
// label_logits(rows), the label's logit - maximum, zero where another part holds the label.
void row_exponents(Matrix<float> logits, VocabularyPart part, const float* maxima, const std::int64_t* labels,
                   float* sums, float* label_logits);

// Computes losses(rows) = log(sum) - label's logit, in nats.
void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses);

// For exponentials that each rank took relative to its own maxima: rescales the rank's sums and label logits to the
// maxima over all ranks. factors (rows): in, the rank's own maxima; out, the factors for the exponentials. columns:
// number of columns of the rank's logits.
void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors);

// Replaces the exponentials by scale (softmax - one_hot(label)), in place. scale is 1 / (number of tokens in the mean
// loss). factors: as rescale_rows leaves them; null: ones.
void cross_entropy_gradient(Matrix<float> exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors = nullptr);

// Computes the gradient (rows, columns) of the hidden states from which the logits were computed: product is the
// exponentials times the rank's rows of the table, label_rows the table rows of the labels that the rank has, else
// zeros; both have the gradient's shape.
void combine_gradient(const float* product, const float* label_rows, const float* sums, const float* factors,
                      float scale, Matrix<float> gradient);

}  // namespace orrery::kernels
