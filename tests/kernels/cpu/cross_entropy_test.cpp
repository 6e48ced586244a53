#include "kernels/cpu/cross_entropy.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/reference/cross_entropy.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kRows = 9, kVocabulary = 37, kPadded = 40;
const std::vector<std::int64_t> kLabels = {0, 36, 7, 19, 20, 21, 9, 10, 30};

struct Result {
  std::vector<float> losses = std::vector<float>(kRows);
  std::vector<float> gradient;  // (rows, padded)
};

// Computes every rank's part, with the reductions between the steps.
Result over_ranks(const std::vector<float>& logits, std::int64_t ranks) {
  const std::int64_t columns = kPadded / ranks;
  Result result = {.gradient = logits};
  const auto whole = matrix(result.gradient.data(), kRows, kPadded);
  std::vector<float> maxima(kRows, -std::numeric_limits<float>::infinity()), sums(kRows), label_logits(kRows);
  const auto each = [&](const auto& piece) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      piece(columns_of(whole, rank * columns, columns), VocabularyPart{rank * columns, kVocabulary});
    }
  };
  each([&](Matrix<float> part, VocabularyPart of) {
    std::vector<float> own(kRows);
    row_maxima(part, of, own.data());
    for (std::int64_t r = 0; r < kRows; ++r) maxima[r] = std::max(maxima[r], own[r]);
  });
  each([&](Matrix<float> part, VocabularyPart of) {
    std::vector<float> own_sums(kRows), own_logits(kRows);
    row_exponents(part, of, maxima.data(), kLabels.data(), own_sums.data(), own_logits.data());
    for (std::int64_t r = 0; r < kRows; ++r) sums[r] += own_sums[r];
    for (std::int64_t r = 0; r < kRows; ++r) label_logits[r] += own_logits[r];
  });
  row_losses(kRows, sums.data(), label_logits.data(), result.losses.data());
  each([&](Matrix<float> part, VocabularyPart of) {
    cross_entropy_gradient(part, of, sums.data(), kLabels.data(), 1.0F / kRows);
  });
  return result;
}

// Computes the same with exponentials that every rank takes relative to its own maxima first.
Result with_own_maxima(const std::vector<float>& logits, std::int64_t ranks) {
  const std::int64_t columns = kPadded / ranks;
  Result result = {.gradient = logits};
  const auto whole = matrix(result.gradient.data(), kRows, kPadded);
  std::vector<float> maxima(kRows, -std::numeric_limits<float>::infinity()), sums(kRows), label_logits(kRows);
  std::vector<std::vector<float>> factors(ranks), own_sums(ranks), own_logits(ranks);
  const auto each = [&](const auto& piece) {
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      piece(rank, columns_of(whole, rank * columns, columns), VocabularyPart{rank * columns, kVocabulary});
  };
  each([&](std::int64_t rank, Matrix<float> part, VocabularyPart of) {
    for (auto* v : {&factors[rank], &own_sums[rank], &own_logits[rank]}) v->resize(kRows);
    row_maxima(part, of, factors[rank].data());
    row_exponents(part, of, factors[rank].data(), kLabels.data(), own_sums[rank].data(), own_logits[rank].data());
    for (std::int64_t r = 0; r < kRows; ++r) maxima[r] = std::max(maxima[r], factors[rank][r]);
  });
  each([&](std::int64_t rank, Matrix<float>, VocabularyPart of) {
    rescale_rows(kRows, columns, of, maxima.data(), kLabels.data(), own_sums[rank].data(), own_logits[rank].data(),
                 factors[rank].data());
    for (std::int64_t r = 0; r < kRows; ++r) sums[r] += own_sums[rank][r];
    for (std::int64_t r = 0; r < kRows; ++r) label_logits[r] += own_logits[rank][r];
  });
  row_losses(kRows, sums.data(), label_logits.data(), result.losses.data());
  each([&](std::int64_t rank, Matrix<float> part, VocabularyPart of) {
    cross_entropy_gradient(part, of, sums.data(), kLabels.data(), 1.0F / kRows, factors[rank].data());
  });
  return result;
}

std::vector<float> some_logits() {
  std::vector<float> logits = random_floats(kRows * kPadded, 1);
  for (float& x : logits) x *= 10;
  return logits;
}

TEST(CrossEntropy, OverOneTwoAndFourRanksMatchesItsReference) {
  const std::vector<float> logits = some_logits();
  const std::vector<double> doubles = wide(logits);
  const Matrix<const double> tokens = columns_of(matrix(doubles.data(), kRows, kPadded), 0, kVocabulary);
  std::vector<double> losses(kRows), gradient(kRows * kPadded);
  reference::cross_entropy<double>(tokens, kLabels.data(), losses.data());
  reference::cross_entropy_gradient<double>(tokens, kLabels.data(), 1.0 / kRows,
                                            columns_of(matrix(gradient.data(), kRows, kPadded), 0, kVocabulary));
  for (const std::int64_t ranks : {1, 2, 4, 20}) {  // with 20 ranks, the last ranks hold only padding
    for (const Result& result : {over_ranks(logits, ranks), with_own_maxima(logits, ranks)}) {
      EXPECT_LT(relative_error(result.losses, losses), kFloatError) << ranks;
      EXPECT_LT(relative_error(result.gradient, gradient), kFloatError) << ranks;
      for (std::int64_t r = 0; r < kRows; ++r) EXPECT_EQ(result.gradient[r * kPadded + kPadded - 1], 0.0F);
    }
  }
}

// The gradient of x for y = x W^T with exponentials E can be formed after the product: scale (f / sum E W - W of the
// label) equals the gradient of y times W.
TEST(CrossEntropy, CombinesWhatWasMultipliedBefore) {
  const std::vector<float> product = {2, 4, 6, 8}, labels = {1, 0, 0, 1}, sums = {4, 2}, factors = {0.5F, 1};
  std::vector<float> y(4);
  combine_gradient(product.data(), labels.data(), sums.data(), factors.data(), 0.5F, matrix(y.data(), 2, 2));
  EXPECT_EQ(y, (std::vector<float>{-0.375F, 0.25F, 1.5F, 1.5F}));
}

TEST(CrossEntropy, ReferenceGradientIsTheDerivative) {
  const std::vector<double> logits = wide(random_floats(kRows * kVocabulary, 1)), weight(kRows, 0.125);
  std::vector<double> gradient(logits.size());
  reference::cross_entropy_gradient<double>(seen(logits, kVocabulary), kLabels.data(), 0.125,
                                            seen(gradient, kVocabulary));
  const auto forward = [](const std::vector<double>& x) {
    std::vector<double> losses(kRows);
    reference::cross_entropy<double>(seen(x, kVocabulary), kLabels.data(), losses.data());
    return losses;
  };
  EXPECT_LT(relative_error(gradient, finite_differences(logits, weight, forward)), kDifferenceError);
}

}  // namespace
}  // namespace orrery::kernels
