#pragma once

#include <cstdint>

namespace orrery::kernels {

// The sums of cross-entropy of one model over `rows` rows: the sum of exponentials of each row's logits, and the
// label's logit, both relative to the row's largest logit. The label's log-probability is label - log(sum).
struct LabelSums {
  const float *sums, *labels;
};

// Computes the loss of direct preference optimization, -log sigmoid(beta (r of the chosen sample - r of the rejected
// one)), where r is the log-probability of a sample's labels by the policy less that by the reference (Rafailov et al.
// 2023, arXiv 2305.18290, equation 7). The rows are those of `samples` samples of equal length, of which each two are a
// pair, the chosen one first. Writes losses (rows), the loss of each row's pair, and factors (rows): the derivative of
// the pair's loss by the label's negative log-probability, times the rows of a pair, so that the mean over rows of
// factor * CE has the gradient of the mean loss of the pairs.
void preference_losses(std::int64_t rows, std::int64_t samples, double beta, const LabelSums& policy,
                       const LabelSums& reference, float* losses, float* factors);

}  // namespace orrery::kernels
