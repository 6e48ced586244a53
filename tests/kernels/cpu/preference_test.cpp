#include "kernels/cpu/preference.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/distillation.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kPairs = 3, kLength = 4, kPreferenceRows = kPairs * 2 * kLength;
constexpr double kBeta = 0.3;

// The log-probability of sample number `sample`, of which the sums of exponentials are all 1.
double of_sample(const std::vector<double>& labels, std::int64_t sample) {
  double sum = 0;
  for (std::int64_t r = 0; r < kLength; ++r) sum += labels[sample * kLength + r];
  return sum;
}

std::vector<double> pair_losses(const std::vector<double>& policy, const std::vector<double>& reference) {
  std::vector<double> losses;
  for (std::int64_t p = 0; p < kPairs; ++p)
    losses.push_back(reference::preference(of_sample(policy, 2 * p), of_sample(policy, 2 * p + 1),
                                           of_sample(reference, 2 * p), of_sample(reference, 2 * p + 1), kBeta));
  return losses;
}

TEST(Preference, MatchesItsReferenceAndItsDerivative) {
  const std::vector<float> policy = random_floats(kPreferenceRows, 1), reference = random_floats(kPreferenceRows, 2);
  const std::vector<float> ones(kPreferenceRows, 1.0F);
  std::vector<float> losses(kPreferenceRows), factors(kPreferenceRows);
  preference_losses(kPreferenceRows, 2 * kPairs, kBeta, {ones.data(), policy.data()}, {ones.data(), reference.data()},
                    losses.data(), factors.data());
  const std::vector<double> of_reference = wide(reference), expected = pair_losses(wide(policy), of_reference);
  for (std::int64_t r = 0; r < kPreferenceRows; ++r) EXPECT_NEAR(losses[r], expected[r / (2 * kLength)], 1e-6) << r;
  // The loss of a row's label is its negative log-probability, and the mean of the pairs' losses is that over the rows.
  const auto forward = [&](const std::vector<double>& x) { return pair_losses(x, of_reference); };
  const std::vector<double> gradient =
      finite_differences(wide(policy), std::vector<double>(kPairs, 1.0 / kPairs), forward);
  for (std::int64_t r = 0; r < kPreferenceRows; ++r) EXPECT_NEAR(-factors[r] / kPreferenceRows, gradient[r], 1e-6) << r;
}

TEST(Preference, IsTheLogarithmOfTwoWhereThePolicyIsTheReference) {
  const std::vector<float> labels = random_floats(kPreferenceRows, 3), ones(kPreferenceRows, 1.0F);
  std::vector<float> losses(kPreferenceRows), factors(kPreferenceRows);
  const LabelSums sums = {ones.data(), labels.data()};
  preference_losses(kPreferenceRows, 2 * kPairs, kBeta, sums, sums, losses.data(), factors.data());
  for (const float x : losses) EXPECT_FLOAT_EQ(x, std::log(2.0F));
}

}  // namespace
}  // namespace orrery::kernels
