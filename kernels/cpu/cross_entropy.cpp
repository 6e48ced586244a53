#include "kernels/cpu/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/exponential.h"
#include "kernels/common/lanes.h"

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

void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors) {
  const std::int64_t tokens = part.tokens_of(columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float rise = factors[r] - maxima[r];  // the rank's own maximum minus the maximum over all ranks
    const std::int64_t label = labels[r] - part.first;
    if (label >= 0 && label < tokens) label_logits[r] += rise;
    factors[r] = tokens > 0 ? std::exp(rise) : 0.0F;
    sums[r] *= factors[r];
  }
}

void combine_gradient(const float* product, const float* label_rows, const float* sums, const float* factors,
                      float scale, Matrix<float> gradient) {
  for (std::int64_t r = 0; r < gradient.rows; ++r) {
    const float factor = scale * factors[r] / sums[r];
    const float *x = product + r * gradient.columns, *label = label_rows + r * gradient.columns;
    for (std::int64_t c = 0; c < gradient.columns; ++c) gradient.row(r)[c] = factor * x[c] - scale * label[c];
  }
}

void cross_entropy_gradient(Matrix<float> exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors) {
  const std::int64_t tokens = part.tokens_of(exponents.columns);
  for (std::int64_t r = 0; r < exponents.rows; ++r) {
    float* x = exponents.row(r);
    const float factor = (factors != nullptr ? factors[r] : 1.0F) * scale / sums[r];
    for (std::int64_t c = 0; c < tokens; ++c) x[c] *= factor;
    const std::int64_t label = labels[r] - part.first;
    if (label >= 0 && label < tokens) x[label] -= scale;
  }
}

}  // namespace orrery::kernels
