#include "sim/predict/out_of_step.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Prediction predicted(const std::string& strategy) {
  const Spec spec = test::spec_of(test::kSmall, strategy);
  return predict(spec, profile_for(spec, ""));
}

// Ranks that are all as fast do the same at the same time, and then some of them take as long as the class that stands
// for all.
TEST(OutOfStep, RanksAsFastAsEachOtherTakeTheStepOfTheFoldedPlan) {
  for (const char* strategy :
       {"data: 8, global_batch: 16", "data: 8, sharding: zero3, global_batch: 16",
        "tensor: 2, data: 4, global_batch: 8", "pipeline: 2, data: 4, sharding: zero3, global_batch: 16"}) {
    const Prediction p = predicted(strategy);
    const auto some = ranks_out_of_step(p.plan, p.costs.timing, 4);
    ASSERT_TRUE(some) << strategy;
    EXPECT_EQ(some->ranks, 4);
    EXPECT_EQ(some->plan.classes.size(), 4 * p.plan.classes.size());
    EXPECT_EQ(simulate(some->plan, some->timing).step_time, simulate(p.plan, p.costs.timing).step_time) << strategy;
  }
}

// Every stage has a rank at every place, and the slowest ranks of two stages are in different pipelines.
TEST(OutOfStep, PlacesOfAStageAreTakenOnceEach) {
  const Prediction p = predicted("pipeline: 2, data: 4, sharding: zero3, global_batch: 16");
  const auto some = ranks_out_of_step(p.plan, p.costs.timing, 4);
  ASSERT_TRUE(some);
  std::vector<std::vector<std::int64_t>> places(2);
  for (std::size_t i = 0; i < some->places.size(); ++i) places[some->plan.classes[i].stage].push_back(some->places[i]);
  EXPECT_NE(places[0], places[1]);
  for (auto& of_stage : places) {
    std::sort(of_stage.begin(), of_stage.end());
    EXPECT_EQ(of_stage, (std::vector<std::int64_t>{0, 1, 2, 3}));
  }
}

// The slower of two ranks is another one in the second stage than in the first.
TEST(OutOfStep, TwoRanksTakeTurns) {
  const Prediction p = predicted("pipeline: 2, data: 2, sharding: zero3, global_batch: 8");
  const auto some = ranks_out_of_step(p.plan, p.costs.timing, 2);
  ASSERT_TRUE(some);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NE(some->places[2 * i], some->places[2 * i + 1]);
}

TEST(OutOfStep, OneDataRankIsNotOutOfStep) {
  const Prediction p = predicted("tensor: 4, global_batch: 4");
  EXPECT_FALSE(ranks_out_of_step(p.plan, p.costs.timing, 1));
}

}  // namespace
}  // namespace orrery
