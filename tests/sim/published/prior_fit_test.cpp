#include "sim/published/prior_fit.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr std::size_t kSources = 60, kRows = 8;

// Sources whose shifts and noise are drawn with the given spreads; every step depends on the parts in its own way.
std::vector<SourceSteps> drawn_sources(double products, double noise) {
  std::mt19937_64 random(7);
  const auto normal = [&](double spread) {
    double sum = 0;  // of twelve uniform numbers, whose variance is one
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) / 9007199254740992.;
    return spread * (sum - 6);
  };
  std::vector<SourceSteps> all(kSources);
  for (SourceSteps& source : all) {
    source.residuals.resize(1);
    const double shift = normal(products);
    for (std::size_t i = 0; i < kRows; ++i) {
      StepShifts slopes{};
      slopes[0] = .1 + .1 * static_cast<double>(i);
      slopes[2] = .9 - slopes[0];
      source.slopes.push_back(slopes);
      source.residuals[0].push_back(slopes[0] * shift + normal(noise));
    }
  }
  return all;
}

StepPriors estimated(const std::vector<SourceSteps>& sources) {
  std::vector<const SourceSteps*> list;
  for (const SourceSteps& s : sources) list.push_back(&s);
  return estimate_priors(list);
}

TEST(PriorFit, FindsHowFarStacksLieApart) {
  const StepPriors wide = estimated(drawn_sources(.3, .02)), narrow = estimated(drawn_sources(.02, .02));
  EXPECT_NEAR(wide.spreads[0], .3, .12);
  EXPECT_LT(narrow.spreads[0], .06);
  EXPECT_LT(wide.spreads[2], wide.spreads[0]);
  EXPECT_NEAR(wide.noise, .02, .006);
  EXPECT_DOUBLE_EQ(wide.spreads[1], judged_priors().spreads[1]) << "no step shows attention";
}

TEST(PriorFit, WithoutSourcesTheJudgedNumbersStay) { EXPECT_EQ(estimate_priors({}), judged_priors()); }

TEST(PriorFit, StepsTellWhichStackTheyAreLike) {
  SourceSteps s = drawn_sources(.05, .02).front();
  s.residuals.push_back(s.residuals[0]);
  for (double& r : s.residuals[0]) r += .5;
  const std::vector<double> shares = likely_stacks(s, {0, 1, 2}, judged_priors());
  EXPECT_GT(shares[1], .8);
  EXPECT_NEAR(shares[0] + shares[1], 1, 1e-12);
}

TEST(PriorFit, TheFileIsWrittenWithNewValues) {
  StepPriors p = judged_priors();
  p.noise = .1234;
  const std::string text = step_priors_json(p, {"a", "b"});
  EXPECT_NE(text.find("\"value\": 0.123"), std::string::npos);
  EXPECT_NE(text.find("\"a\""), std::string::npos);
}

}  // namespace
}  // namespace orrery
