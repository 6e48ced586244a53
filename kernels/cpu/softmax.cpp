#include "kernels/cpu/softmax.h"

#include <limits>

#include "kernels/common/exponential.h"
#include "kernels/common/lanes.h"

namespace orrery::kernels {

static void softmax_row(const float* x, KeyRange seen, float* p, std::int64_t columns) {
  const std::int64_t count = seen.last - seen.first;
  const float shift = maximum(count, x + seen.first, -std::numeric_limits<float>::infinity());
  std::fill(p, p + seen.first, 0.0F);
  for (std::int64_t i = seen.first; i < seen.last; ++i) p[i] = exponential(x[i] - shift);
  std::fill(p + seen.last, p + columns, 0.0F);
  const float* from = p + seen.first;
  const float total = sum<float>(count, [from](std::int64_t i) { return from[i]; });
  for (std::int64_t i = seen.first; i < seen.last; ++i) p[i] /= total;
}

void masked_softmax(Matrix<const float> scores, std::int64_t queries, const CausalMask& mask,
                    Matrix<float> probabilities) {
  for (std::int64_t r = 0; r < scores.rows; ++r) {
    softmax_row(scores.row(r), visible_keys(mask, r % queries, scores.columns), probabilities.row(r), scores.columns);
  }
}

void softmax_gradient(Matrix<const float> probabilities, Matrix<float> gradient) {
  for (std::int64_t r = 0; r < gradient.rows; ++r) {
    const float* p = probabilities.row(r);
    float* g = gradient.row(r);
    const float mean = sum<float>(gradient.columns, [p, g](std::int64_t i) { return p[i] * g[i]; });
    for (std::int64_t i = 0; i < gradient.columns; ++i) g[i] = p[i] * (g[i] - mean);
  }
}

}  // namespace orrery::kernels
