#include "kernels/cpu/distillation.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/reference/distillation.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kRows = 5, kTokens = 37, kColumns = 40;
const std::vector<std::int64_t> kLabels = {0, 36, 7, 19, 30};
constexpr DistillationLoss kLoss = {.temperature = 2.5, .divergence = 0.7, .cross_entropy = 0.4};
constexpr float kScale = 0.125F;

struct Taught {
  std::vector<float> losses = std::vector<float>(kRows), gradient;
};

// Computes every rank's part, with the reductions between the steps.
Taught taught_over(const std::vector<float>& student, const std::vector<float>& teacher, std::int64_t ranks) {
  const std::int64_t columns = kColumns / ranks;
  Taught result = {.gradient = student};
  const auto own = matrix(result.gradient.data(), kRows, kColumns);
  const auto other = matrix(teacher.data(), kRows, kColumns);
  const auto part = [&](std::int64_t rank) {
    return BothLogits{columns_of(matrix<const float>(result.gradient.data(), kRows, kColumns), rank * columns, columns),
                      columns_of(other, rank * columns, columns),
                      {rank * columns, kTokens}};
  };
  std::vector<float> maxima(2 * kRows, -std::numeric_limits<float>::infinity()), sums(5 * kRows);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> of_rank(maxima.size());
    distillation_maxima(part(rank), of_rank.data());
    for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(maxima[i], of_rank[i]);
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> of_rank(sums.size());
    distillation_sums(part(rank), kLoss, maxima.data(), kLabels.data(), of_rank.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
  }
  distillation_losses(kRows, kLoss, sums.data(), result.losses.data());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    distillation_gradient(part(rank), kLoss, maxima.data(), kLabels.data(), sums.data(), kScale,
                          columns_of(own, rank * columns, columns));
  return result;
}

std::vector<double> reference_losses(const std::vector<double>& student, const std::vector<double>& teacher) {
  std::vector<double> losses;
  for (std::int64_t r = 0; r < kRows; ++r)
    losses.push_back(reference::distillation<double>(&student[r * kColumns], &teacher[r * kColumns], kTokens,
                                                     kLabels[r], kLoss.temperature, kLoss.divergence,
                                                     kLoss.cross_entropy));
  return losses;
}

TEST(Distillation, OverOneTwoAndFourRanksMatchesItsReference) {
  std::vector<float> student = random_floats(kRows * kColumns, 1), teacher = random_floats(kRows * kColumns, 2);
  for (float& x : student) x *= 6;
  for (float& x : teacher) x *= 6;
  const std::vector<double> of_teacher = wide(teacher), weight(kRows, kScale);
  const auto forward = [&](const std::vector<double>& x) { return reference_losses(x, of_teacher); };
  const std::vector<double> gradient = finite_differences(wide(student), weight, forward);
  for (const std::int64_t ranks : {1, 2, 4, 20}) {  // with 20 ranks, the last ranks hold only padding
    const Taught result = taught_over(student, teacher, ranks);
    EXPECT_LT(relative_error(result.losses, forward(wide(student))), kFloatError) << ranks;
    EXPECT_LT(relative_error(result.gradient, gradient), 2 * kFloatError) << ranks;
  }
}

TEST(Distillation, OfAModelByItselfIsZero) {
  const std::vector<float> logits = random_floats(kRows * kColumns, 3);
  const auto view = matrix(logits.data(), kRows, kColumns);
  const DistillationLoss loss = {.temperature = 2, .divergence = 1, .cross_entropy = 0};
  std::vector<float> maxima(2 * kRows), sums(5 * kRows), losses(kRows);
  const BothLogits both = {view, view, {0, kTokens}};
  distillation_maxima(both, maxima.data());
  distillation_sums(both, loss, maxima.data(), kLabels.data(), sums.data());
  distillation_losses(kRows, loss, sums.data(), losses.data());
  for (const float x : losses) EXPECT_EQ(x, 0.0F);
}

}  // namespace
}  // namespace orrery::kernels
