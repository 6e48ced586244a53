#include "sim/published/interval_fit.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::vector<StepResidual> steps_of(const std::string& software, const std::string& source, int rows, double low,
                                   double high) {
  std::vector<StepResidual> result;
  for (int i = 0; i < rows; ++i) result.push_back({"ampere", software, source, low + (high - low) * i / (rows - 1)});
  return result;
}

std::vector<StepResidual> together(const std::vector<std::vector<StepResidual>>& parts) {
  std::vector<StepResidual> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const IntervalClass* class_named(const std::vector<IntervalClass>& classes, const std::string& gpu,
                                 const std::string& software) {
  for (const IntervalClass& c : classes) {
    if (c.gpu == gpu && c.software == software) return &c;
  }
  return nullptr;
}

// Publications whose steps all have one ratio: half of the width is 1.28 times the spread between them, to which two
// more of the spread of all are added.
TEST(IntervalFit, IsAsWideAsPublicationsAreApart) {
  const double off = 0.1;
  const std::vector<StepResidual> steps = together(
      {steps_of("a", "s", 10, std::exp(off), std::exp(off)), steps_of("a", "t", 10, std::exp(-off), std::exp(-off))});
  const std::vector<IntervalClass> classes = interval_classes(steps);
  const IntervalClass* c = class_named(classes, "ampere", "a");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->rows, 20U);
  const double half = 1.2816 * std::sqrt((2 + 2) * off * off / 4 * 1.5);
  EXPECT_NEAR(std::log(c->interval.high), half, 1e-9);
  EXPECT_NEAR(std::log(c->interval.low), -half, 1e-9);
}

TEST(IntervalFit, OfMorePublicationsIsNarrower) {
  std::vector<std::vector<StepResidual>> few, many;
  for (int i = 0; i < 2; ++i) few.push_back(steps_of("a", std::to_string(i), 12, 0.9, 1.1));
  for (int i = 0; i < 8; ++i) many.push_back(steps_of("a", std::to_string(i), 12, 0.9, 1.1));
  const Interval two = interval_classes(together(few)).front().interval;
  const Interval eight = interval_classes(together(many)).front().interval;
  EXPECT_LT(eight.high / eight.low, two.high / two.low);
}

TEST(IntervalFit, HoldsThePredictionEvenWhereAllStepsAreSlower) {
  std::vector<std::vector<StepResidual>> slow;
  for (int i = 0; i < 20; ++i) slow.push_back(steps_of("a", std::to_string(i), 10, 1.3, 1.35));
  for (int i = 0; i < 60; ++i) slow.push_back(steps_of(std::to_string(i), std::to_string(i), 5, 0.99, 1.01));
  const std::vector<IntervalClass> classes = interval_classes(together(slow));
  EXPECT_EQ(class_named(classes, "ampere", "a")->interval.low, 1);
  EXPECT_GT(class_named(classes, "ampere", "a")->interval.high, 1.3);
}

// A stack that is not known may be any of them, however many steps of each were measured.
TEST(IntervalFit, OfUnknownSoftwareCountsPublicationsEqually) {
  const std::vector<IntervalClass> classes =
      interval_classes(together({steps_of("a", "big", 1000, 0.99, 1.01), steps_of("b", "small", 5, 1.4, 1.6)}));
  EXPECT_GT(class_named(classes, "ampere", "")->interval.high, 1.4);
  EXPECT_EQ(class_named(classes, "ampere", "b"), nullptr) << "five steps are no class";
}

TEST(IntervalFit, CountsStepsInIntervalsOfOtherPublications) {
  const std::vector<StepResidual> alike = together(
      {steps_of("a", "s", 40, 0.95, 1.05), steps_of("a", "t", 40, 0.95, 1.05), steps_of("a", "u", 40, 0.95, 1.05)});
  const IntervalCoverage same = interval_coverage(alike);
  ASSERT_EQ(same.classes.size(), 1U);
  EXPECT_EQ(same.classes.front().rows, 120U);
  EXPECT_GT(same.classes.front().inside, 0.8);
  EXPECT_GT(same.new_sources, 0.8);
  const IntervalCoverage apart = interval_coverage(together({alike, steps_of("a", "v", 40, 2.95, 3.05)}));
  EXPECT_LT(apart.new_sources, 0.76);
}

}  // namespace
}  // namespace orrery
