#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The steps of cross-entropy on one rank's logits (rows, columns), which cover a part of the vocabulary. Between the
// steps, the ranks that hold parts of the vocabulary all-reduce the values of each row: the maxima by maximum, sums and
// label logits by addition. Padding columns beyond the vocabulary's end are ignored; their gradient is zero.
struct VocabularyPart {
  std::int64_t first = 0;       // id of the token in column 0
  std::int64_t vocabulary = 0;  // number of tokens in the vocabulary of all ranks together

  // Returns the number of a rank's columns that are tokens of the vocabulary, not padding.
  std::int64_t tokens_of(std::int64_t columns) const;
};

// Writes maxima(rows), the largest logit of each row; -infinity if the rank's part of the vocabulary has no token.
void row_maxima(Matrix<const float> logits, VocabularyPart part, float* maxima);

// Replaces logits by exp(logit - maximum), in place. Writes sums(rows) of these exponentials and label_logits(rows):
// the label's logit - maximum, or zero if another rank's part of the vocabulary holds the label.
void row_exponents(Matrix<float> logits, VocabularyPart part, const float* maxima, const std::int64_t* labels,
                   float* sums, float* label_logits);

// Computes losses(rows) = log(sum) - label's logit, in nats.
void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses);

// Converts a rank's sums and label logits, which are relative to the rank's own maxima, so that they are relative to
// the maxima over all ranks. factors (rows): on entry, the rank's own maxima; on return, the factors exp(own maximum -
// maximum over all ranks) by which its exponentials must be multiplied. columns: number of columns of the rank's
// logits.
void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors);

// Turns the exponentials of logits into the gradient of the logits, in place: scale (softmax - one_hot(label)), where
// scale is 1 / (number of tokens in the mean loss). factors: as computed by rescale_rows(); null: all are 1.
void cross_entropy_gradient(Matrix<float> exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors = nullptr);

// Computes the gradient (rows, columns) of the hidden states from which the logits were computed. product: the
// exponentials times the rank's rows of the output weights; label_rows: for each token, the row of the output weights
// that belongs to its label, or zeros if another rank holds that row. Both have the gradient's shape.
void combine_gradient(const float* product, const float* label_rows, const float* sums, const float* factors,
                      float scale, Matrix<float> gradient);

}  // namespace orrery::kernels
