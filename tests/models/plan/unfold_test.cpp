// Every rank gets its class's tasks, and transfers meet the members of its real groups.
#include "models/plan/unfold.h"

#include <set>

#include <gtest/gtest.h>

#include "models/plan/check.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

TEST(Unfold, EveryRankRunsItsClass) {
  int unfolded = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const Plan folded = make_plan(test::random_spec(seed));
    if (folded.ranks > 48) continue;
    ++unfolded;
    const Plan plan = unfold(folded);
    check_plan(plan);
    ASSERT_EQ(plan.classes.size(), static_cast<std::size_t>(plan.ranks));
    const auto slot_of = slots_of_ranks(folded);
    TaskId tasks = 0;
    for (std::uint32_t r = 0; r < plan.classes.size(); ++r) {
      const RankClass& rank = plan.classes[r];
      const RankClass& own = folded.classes[slot_of[r]];
      EXPECT_EQ(rank.representative, r);
      EXPECT_EQ(rank.multiplicity, 1);
      ASSERT_EQ(rank.end - rank.begin, own.end - own.begin);
      for (TaskId i = 0; i < rank.end - rank.begin; ++i) {
        EXPECT_EQ(plan.tasks[rank.begin + i].op, folded.tasks[own.begin + i].op);
        EXPECT_EQ(plan.dependencies_of(rank.begin + i).size(), folded.dependencies_of(own.begin + i).size());
        for (const TaskId d : plan.dependencies_of(rank.begin + i)) EXPECT_GE(d, rank.begin);
      }
      tasks += rank.end - rank.begin;
    }
    EXPECT_EQ(tasks, plan.task_count());
    // The ends of every transfer are the ranks of one group, each once.
    for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
      std::set<std::int32_t> ranks;
      for (const TaskId t : plan.members_of(m)) ranks.insert(static_cast<std::int32_t>(plan.slot_of(t)));
      EXPECT_EQ(ranks.size(), plan.members_of(m).size());
      const auto* c = std::get_if<Collective>(&plan.op_of(plan.members_of(m).front()).work);
      if (c == nullptr) continue;
      const GroupTable& table = plan.dimensions[static_cast<std::size_t>(c->group)];
      const auto& group = table.groups[table.member_of[*ranks.begin()]];
      EXPECT_EQ(ranks, std::set<std::int32_t>(group.begin(), group.end()));
    }
  }
  EXPECT_GT(unfolded, 40);
}

TEST(Unfold, KeepsWhatThePlanSaysOfAllRanks) {
  Plan folded = make_plan(test::random_spec(1));
  folded.servers_beside = folded.asynchronous_workers = folded.one_queue = folded.steps_overlap = true;
  folded.shards_optimizer = folded.shards_gradients = true;
  const Plan plan = unfold(folded);
  EXPECT_TRUE(plan.servers_beside && plan.asynchronous_workers && plan.one_queue && plan.steps_overlap);
  EXPECT_TRUE(plan.shards_optimizer && plan.shards_gradients);
}

TEST(Unfold, OneRankAlone) {
  const Plan folded = make_plan(test::spec_of(test::kSmall, "tensor: 2, pipeline: 2, data: 2, global_batch: 8"));
  const Plan whole = unfold(folded);
  for (std::int64_t r = 0; r < folded.ranks; ++r) {
    const Plan one = instantiate(folded, r);
    ASSERT_EQ(one.classes.size(), 1U);
    EXPECT_EQ(one.classes[0].representative, r);
    EXPECT_EQ(one.task_count(), whole.classes[r].end - whole.classes[r].begin);
    EXPECT_EQ(one.ranks, folded.ranks);
  }
}

}  // namespace
}  // namespace orrery
