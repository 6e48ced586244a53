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

// Expects the tasks of a class to be those of a class of another plan, up to the numbers of tasks, frames and buffers.
void expect_same_tasks(const Plan& plan, std::uint32_t slot, const Plan& other, std::uint32_t of) {
  const RankClass &a = plan.classes[slot], &b = other.classes[of];
  ASSERT_EQ(a.end - a.begin, b.end - b.begin);
  ASSERT_EQ(a.validated - a.begin, b.validated == kNone ? kNone - a.begin : b.validated - b.begin);
  const auto numbered = [](std::uint32_t id, std::uint32_t first) { return id == kNone ? kNone : id - first; };
  for (TaskId t = 0; t < a.end - a.begin; ++t) {
    const Task &x = plan.tasks[a.begin + t], &y = other.tasks[b.begin + t];
    ASSERT_EQ(plan.op_of(a.begin + t).name, other.op_of(b.begin + t).name);
    ASSERT_EQ(x.flags, y.flags);
    ASSERT_EQ(x.lane % kLanes, y.lane % kLanes);
    ASSERT_EQ(x.lane / kLanes, slot);
    const auto waits = plan.dependencies_of(a.begin + t), others = other.dependencies_of(b.begin + t);
    ASSERT_EQ(waits.size(), others.size());
    for (std::size_t d = 0; d < waits.size(); ++d) ASSERT_EQ(waits[d] - a.begin, others[d] - b.begin);
    const Frame &f = plan.frames[x.frame], &g = other.frames[y.frame];
    ASSERT_EQ(x.frame - a.frame, y.frame - b.frame);
    ASSERT_EQ(f.slot, slot);
    ASSERT_EQ(f.first_buffer - plan.frames[a.frame].first_buffer, g.first_buffer - other.frames[b.frame].first_buffer);
    ASSERT_EQ(plan.blocks[f.block].name, other.blocks[g.block].name);
    for (const std::uint32_t Frame::*next : {&Frame::next, &Frame::previous, &Frame::unit, &Frame::state})
      ASSERT_EQ(numbered(f.*next, a.frame), numbered(g.*next, b.frame));
  }
}

// Classes that slow ranks alone tell apart have the tasks and buffers of their stage's class without slow ranks.
TEST(RankClasses, ThatDifferInTheirRanksAloneHaveEqualTasks) {
  for (const char* strategy :
       {"tensor: 2, pipeline: 2, data: 4, global_batch: 16", "pipeline: 2, data: 4, sharding: zero3, global_batch: 16",
        "pipeline: 2, virtual_stages: 2, data: 4, sharding: zero1, global_batch: 16",
        "pipeline: 2, data: 4, schedule: pipedream-2bw, clip: 0, global_batch: 16",
        "data: 4, offload: {optimizer: cpu}, sharding: zero2, global_batch: 16"}) {
    const Plan plain = make_plan(slow_kinds_spec(strategy, {}));
    const Plan plan = make_plan(slow_kinds_spec(strategy, {{1, 1.5}}));
    const std::size_t kinds = plan.classes.size() / plain.classes.size();
    ASSERT_GE(kinds, 2U) << strategy;
    std::uint32_t buffers = 0;
    for (const Frame& f : plan.frames) {
      ASSERT_EQ(f.first_buffer, buffers) << strategy;
      buffers += static_cast<std::uint32_t>(plan.blocks[f.block].buffers.size());
    }
    EXPECT_EQ(plan.buffers, buffers) << strategy;
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot)
      expect_same_tasks(plan, slot, plain, slot / static_cast<std::uint32_t>(kinds));
  }
}

}  // namespace
}  // namespace orrery
