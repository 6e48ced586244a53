// The ranks of a stage that are rank classes by themselves.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec slow_kinds_spec(const std::string& strategy, std::vector<Straggler> stragglers) {
  Spec spec = test::spec_of(test::kSmall, strategy);
  spec.cluster.stragglers = std::move(stragglers);
  return spec;
}

// In a replica with a straggler each slow place is a rank class; over all other replicas each place in a replica is one
// class.
TEST(RankClasses, AreWhatStragglersTouch) {
  const std::string strategy = "tensor: 2, pipeline: 2, data: 8, global_batch: 16";
  EXPECT_EQ(make_plan(slow_kinds_spec(strategy, {})).classes.size(), 2U);
  EXPECT_EQ(make_plan(slow_kinds_spec(strategy, {{5, 1.0}})).classes.size(), 2U);
  const Plan plan = make_plan(slow_kinds_spec(strategy, {{5, 1.5}, {12, 2.0}}));
  EXPECT_EQ(plan.classes.size(), 2U * 2 * (1 + 2));
  const auto ranks = [](std::int64_t sum, const RankClass& s) { return sum + s.multiplicity; };
  EXPECT_EQ(std::accumulate(plan.classes.begin(), plan.classes.end(), std::int64_t{0}, ranks), plan.ranks);
  EXPECT_EQ(unfold(plan).classes.size(), 32U);
}

// Replicas with equal stragglers in the same places are one class, and so are all places of a tensor group without
// stragglers.
TEST(RankClasses, OfAlikeStragglersFold) {
  const auto slots = [](const std::string& strategy, std::vector<Straggler> stragglers) {
    return make_plan(slow_kinds_spec(strategy, std::move(stragglers))).classes.size();
  };
  const std::string two = "tensor: 2, pipeline: 2, data: 8, global_batch: 16";
  // the slow place of two replicas, and the six other replicas
  EXPECT_EQ(slots(two, {{5, 1.5}, {13, 1.5}}), 2U * 2 * 2);
  EXPECT_EQ(slots(two, {{5, 1.5}, {13, 1.25}}), 2U * 2 * 3);
  // the slow place, and the seven other places
  EXPECT_EQ(slots("tensor: 8, data: 8, global_batch: 8", {{3, 1.5}}), 2U * 2);
  EXPECT_EQ(slots("data: 64, global_batch: 64", {{3, 1.5}, {9, 1.5}, {10, 1.5}}), 2U);
}

}  // namespace
}  // namespace orrery
