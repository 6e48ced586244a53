// Several steps in one plan: how often each task occurs, and that both ends of transfers still match.
#include "models/plan/repeat_steps.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

std::int64_t updates_of(const Plan& plan, const RankClass& slot) {
  std::int64_t n = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) n += std::holds_alternative<Update>(plan.op_of(t).work) ? 1 : 0;
  return n;
}

// Which repetition of its slot's step a task of three stands in, the one before the update that is rolled back
// included, and the task of the one step that it repeats.
std::pair<std::int64_t, TaskId> origin_of(const Plan& one, const Plan& three, TaskId t) {
  const std::uint32_t s = three.slot_of(t);
  const RankClass& slot = one.classes[s];
  const TaskId step = slot.end - slot.begin, before = slot.validated + 1 - slot.begin;
  const TaskId second = step + before + 2 * static_cast<TaskId>(updates_of(one, slot)), at = t - three.classes[s].begin;
  const TaskId starts[] = {0, step, second, second + step};
  const std::int64_t repetition = std::upper_bound(std::begin(starts), std::end(starts), at) - starts - 1;
  return {repetition, slot.begin + at - starts[repetition]};
}

TEST(RepeatSteps, RunAgainWhatStandsBeforeAnUpdateThatIsSetRight) {
  for (const char* strategy : {"pipeline: 4, data: 2, tensor: 2, global_batch: 16, schedule: zb-h2",
                               "pipeline: 2, virtual_stages: 2, schedule: zb-v, global_batch: 8"}) {
    const Plan one =
        make_plan(test::spec_of(test::kSmall, strategy, 32, "profile: orrery, post_update_validation: true"));
    const Plan three = repeat_steps(one, {false, true, false});
    ASSERT_EQ(three.classes.size(), one.classes.size());
    std::int64_t again = 0;
    for (std::size_t s = 0; s < one.classes.size(); ++s) {
      const RankClass& slot = one.classes[s];
      const std::int64_t before = slot.validated + 1 - slot.begin, updates = updates_of(one, slot);
      EXPECT_GT(updates, 0);
      EXPECT_EQ(three.classes[s].end - three.classes[s].begin, 3 * (slot.end - slot.begin) + before + 2 * updates);
      for (TaskId t = slot.begin; t <= slot.validated; ++t) again += one.tasks[t].match != kNone ? 1 : 0;
    }
    std::int64_t ends = 0;
    for (std::uint32_t m = 0; m < three.matches.size(); ++m) {
      const auto members = three.members_of(m);
      ends += std::ssize(members);
      const Op& first = three.op_of(members.front());
      for (const TaskId t : members) EXPECT_EQ(three.op_of(t).work.index(), first.work.index());
      const auto [repetition, task] = origin_of(one, three, members.front());
      EXPECT_EQ(members.size(), one.members_of(one.tasks[task].match).size()) << first.name;
      for (const TaskId t : members) {
        const auto [its, original] = origin_of(one, three, t);
        EXPECT_EQ(its, repetition) << first.name;
        EXPECT_EQ(one.tasks[original].match, one.tasks[task].match) << first.name;
      }
    }
    EXPECT_EQ(ends, 3 * std::ssize(one.match_members) + again);
  }
}

TEST(RepeatSteps, OfNothingValidatedAreStepsAlone) {
  const Plan one = make_plan(test::spec_of(test::kSmall, "pipeline: 2, global_batch: 8"));
  EXPECT_EQ(repeat_steps(one, {true, true}).task_count(), 2 * one.task_count());
}

}  // namespace
}  // namespace orrery
