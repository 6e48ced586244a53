#include "kernels/cpu/preference.h"

#include <algorithm>
#include <cmath>

namespace orrery::kernels {

void preference_losses(std::int64_t rows, std::int64_t samples, double beta, const LabelSums& policy,
                       const LabelSums& reference, float* losses, float* factors) {
  const std::int64_t length = rows / samples;
  const auto probability = [](const LabelSums& m, std::int64_t r) {
    return static_cast<double>(m.labels[r]) - std::log(static_cast<double>(m.sums[r]));
  };
  for (std::int64_t first = 0; first < rows; first += 2 * length) {
    double margin = 0;
    for (std::int64_t r = first; r < first + 2 * length; ++r)
      margin += (r < first + length ? 1 : -1) * (probability(policy, r) - probability(reference, r));
    const double x = beta * margin;
    // log(1 + e^-x) without overflow for negative x
    const double loss = std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    const double factor = static_cast<double>(2 * length) * beta / (1 + std::exp(x));
    std::fill_n(losses + first, 2 * length, static_cast<float>(loss));
    std::fill_n(factors + first, length, static_cast<float>(factor));
    std::fill_n(factors + first + length, length, static_cast<float>(-factor));
  }
}

}  // namespace orrery::kernels
