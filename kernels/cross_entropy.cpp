#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/exponential.h"
#include "kernels/lanes.h"

namespace orrery::kernels {

std::int64_t VocabularyPart::tokens_of(std::int64_t columns) const {
  return std::clamp<std::int64_t>(vocabulary - first, 0, columns);
}

void row_maxima(Matrix<const float> logits, VocabularyPart part, float* maxima) {
  const std::int64_t tokens = part.tokens_of(logits.columns);
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    maxima[r] = maximum(tokens, logits.row(r), -std::numeric_limits<float>::infinity());
  }
}

void row_exponents(Matrix<float> logits, VocabularyPart part, const float* maxima, const std::int64_t* labels,
                   float* sums, float* label_logits) {
  const std::int64_t tokens = part.tokens_of(logits.columns);
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    float* x = logits.row(r);
    const float shift = maxima[r];
    const std::int64_t label = labels[r] - part.first;
    label_logits[r] = label >= 0 && label < tokens ? x[label] - shift : 0.0F;
    for (std::int64_t c = 0; c < tokens; ++c) x[c] = exponential(x[c] - shift);
    std::fill(x + tokens, x + logits.columns, 0.0F);
    sums[r] = static_cast<float>(sum<double>(tokens, [x](std::int64_t c) { return static_cast<double>(x[c]); }));
  }
}

void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses) {
  for (std::int64_t r = 0; r < rows; ++r) losses[r] = std::log(sums[r]) - label_logits[r];
}

void cross_entropy_gradient(Matrix<float> exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale) {
  const std::int64_t tokens = part.tokens_of(exponents.columns);
  for (std::int64_t r = 0; r < exponents.rows; ++r) {
    float* x = exponents.row(r);
    const float factor = scale / sums[r];
    for (std::int64_t c = 0; c < tokens; ++c) x[c] *= factor;
    const std::int64_t label = labels[r] - part.first;
    if (label >= 0 && label < tokens) x[label] -= scale;
  }
}

}  // namespace orrery::kernels
