#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The pieces of cross-entropy over logits (rows, columns) of a part of the vocabulary. Between them the ranks that hold
// the other parts reduce the rows' values: the maxima by maximum, sums and label logits by addition. Padding columns,
// past the vocabulary's end, take no part: their gradient is zero.
struct VocabularyPart {
  std::int64_t first = 0;       // token of column 0
  std::int64_t vocabulary = 0;  // all tokens that exist

  // How many of a rank's columns are tokens.
  std::int64_t tokens_of(std::int64_t columns) const;
};

// maxima(rows); -infinity where the part holds no token.
void row_maxima(Matrix<const float> logits, VocabularyPart part, float* maxima);

// logits become exp(logit - maximum), in place; sums(rows) are theirs; label_logits(rows) the label's logit - maximum,
// zero where another part holds it.
void row_exponents(Matrix<float> logits, VocabularyPart part, const float* maxima, const std::int64_t* labels,
                   float* sums, float* label_logits);

// losses(rows) = log(sum) - label's logit, in nats.
void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses);

// Where each rank took exponents to its own maxima: brings its sums and label logits to the maxima of all. factors
// (rows): those own maxima; then what multiplies the exponents. columns: of the rank's logits.
void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors);

// From the exponents to scale (softmax - one_hot(label)), in place. scale is 1 / (tokens that the mean loss is over).
// factors: as rescale_rows leaves them; null: ones.
void cross_entropy_gradient(Matrix<float> exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors = nullptr);

// gradient (rows, columns) of what the logits were made of: product is the exponents times the rank's rows of the
// table, label_rows those of the labels that it has, zeros else; both of the gradient's shape.
void combine_gradient(const float* product, const float* label_rows, const float* sums, const float* factors,
                      float scale, Matrix<float> gradient);

}  // namespace orrery::kernels
