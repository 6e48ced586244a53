#include "kernels/cpu/distillation.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/reference/distillation.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kTaughtRows = 5, kTaughtTokens = 37, kTaughtColumns = 40;
const std::vector<std::int64_t> kTaughtLabels = {0, 36, 7, 19, 30};
constexpr DistillationLoss kTaughtLoss = {.temperature = 2.5, .divergence = 0.7, .cross_entropy = 0.4};
constexpr float kTaughtScale = 0.125F;

struct Taught {
  std::vector<float> losses = std::vector<float>(kTaughtRows), gradient;
};

// Computes every rank's part, with the reductions between the steps.
Taught taught_over(const std::vector<float>& student, const std::vector<float>& teacher, std::int64_t ranks) {
  const std::int64_t columns = kTaughtColumns / ranks;
  Taught result = {.gradient = student};
  const auto own = matrix(result.gradient.data(), kTaughtRows, kTaughtColumns);
  const auto other = matrix(teacher.data(), kTaughtRows, kTaughtColumns);
  const auto part = [&](std::int64_t rank) {
    return BothLogits{
        columns_of(matrix<const float>(result.gradient.data(), kTaughtRows, kTaughtColumns), rank * columns, columns),
        columns_of(other, rank * columns, columns),
        {rank * columns, kTaughtTokens}};
  };
  std::vector<float> maxima(2 * kTaughtRows, -std::numeric_limits<float>::infinity()), sums(5 * kTaughtRows);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> of_rank(maxima.size());
    distillation_maxima(part(rank), of_rank.data());
    for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(maxima[i], of_rank[i]);
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> of_rank(sums.size());
    distillation_sums(part(rank), kTaughtLoss, maxima.data(), kTaughtLabels.data(), of_rank.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
  }
  distillation_losses(kTaughtRows, kTaughtLoss, sums.data(), result.losses.data());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    distillation_gradient(part(rank), kTaughtLoss, maxima.data(), kTaughtLabels.data(), sums.data(), kTaughtScale,
                          columns_of(own, rank * columns, columns));
  return result;
}

std::vector<double> reference_losses(const std::vector<double>& student, const std::vector<double>& teacher) {
  std::vector<double> losses;
  for (std::int64_t r = 0; r < kTaughtRows; ++r)
    losses.push_back(reference::distillation<double>(&student[r * kTaughtColumns], &teacher[r * kTaughtColumns],
                                                     kTaughtTokens, kTaughtLabels[r], kTaughtLoss.temperature,
                                                     kTaughtLoss.divergence, kTaughtLoss.cross_entropy));
  return losses;
}

TEST(Distillation, OverOneTwoAndFourRanksMatchesItsReference) {
  std::vector<float> student = random_floats(kTaughtRows * kTaughtColumns, 1),
                     teacher = random_floats(kTaughtRows * kTaughtColumns, 2);
  for (float& x : student) x *= 6;
  for (float& x : teacher) x *= 6;
  const std::vector<double> of_teacher = wide(teacher), weight(kTaughtRows, kTaughtScale);
  const auto forward = [&](const std::vector<double>& x) { return reference_losses(x, of_teacher); };
  const std::vector<double> gradient = finite_differences(wide(student), weight, forward);
  for (const std::int64_t ranks : {1, 2, 4, 20}) {  // with 20 ranks, the last ranks hold only padding
    const Taught result = taught_over(student, teacher, ranks);
    EXPECT_LT(relative_error(result.losses, forward(wide(student))), kFloatError) << ranks;
    EXPECT_LT(relative_error(result.gradient, gradient), 2 * kFloatError) << ranks;
  }
}

TEST(Distillation, OfAModelByItselfIsZero) {
  const std::vector<float> logits = random_floats(kTaughtRows * kTaughtColumns, 3);
  const auto view = matrix(logits.data(), kTaughtRows, kTaughtColumns);
  const DistillationLoss loss = {.temperature = 2, .divergence = 1, .cross_entropy = 0};
  std::vector<float> maxima(2 * kTaughtRows), sums(5 * kTaughtRows), losses(kTaughtRows);
  const BothLogits both = {view, view, {0, kTaughtTokens}};
  distillation_maxima(both, maxima.data());
  distillation_sums(both, loss, maxima.data(), kTaughtLabels.data(), sums.data());
  distillation_losses(kTaughtRows, loss, sums.data(), losses.data());
  for (const float x : losses) EXPECT_EQ(x, 0.0F);
}

constexpr std::int64_t kFeatureRows = 7, kFeatureColumns = 19;
constexpr double kFeatureWeight = 0.3;

std::vector<double> feature_losses(const std::vector<double>& student, const std::vector<double>& teacher) {
  std::vector<double> losses;
  for (std::int64_t r = 0; r < kFeatureRows; ++r)
    losses.push_back(reference::mean_square(&student[r * kFeatureColumns], &teacher[r * kFeatureColumns],
                                            kFeatureColumns, kFeatureWeight));
  return losses;
}

TEST(FeatureLoss, MatchesItsReferenceAndItsDerivative) {
  const std::vector<float> student = random_floats(kFeatureRows * kFeatureColumns, 5),
                           teacher = random_floats(kFeatureRows * kFeatureColumns, 6);
  const auto view = [](const std::vector<float>& x) { return matrix(x.data(), kFeatureRows, kFeatureColumns); };
  const auto losses = [&](const std::vector<double>& x) { return feature_losses(x, wide(teacher)); };
  double all = 0;
  for (const double l : losses(wide(student))) all += l;
  EXPECT_NEAR(feature_loss(view(student), view(teacher), kFeatureWeight), all, kFloatError * all);
  constexpr double kLossScale = 0.125;
  std::vector<float> gradient(student.size());
  feature_gradient(view(student), view(teacher), kLossScale * kFeatureWeight,
                   matrix(gradient.data(), kFeatureRows, kFeatureColumns));
  const std::vector<double> weight(kFeatureRows, kLossScale);
  EXPECT_LT(relative_error(gradient, finite_differences(wide(student), weight, losses)), 2 * kFloatError);
  EXPECT_EQ(feature_loss(view(student), view(student), kFeatureWeight), 0.0F);
}

}  // namespace
}  // namespace orrery::kernels
