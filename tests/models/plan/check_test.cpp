// Planted faults that check_plan() must name.
#include "models/plan/check.h"

#include <functional>

#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

std::string fault_of(const Plan& plan) {
  try {
    check_plan(plan);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

Plan piped() {
  return make_plan(test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true",
                                 "tensor: 2, sequence_parallel: false, pipeline: 4, data: 2, global_batch: 16"));
}

std::vector<TaskId> tasks_of(const Plan& plan, std::uint32_t slot, const std::string& name) {
  std::vector<TaskId> found;
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    if (plan.op_of(t).name == name) found.push_back(t);
  }
  return found;
}

// Swaps the ends of two matches that lie on `slot`: two transfers of one rank change places.
void swap_matches(Plan& plan, TaskId a, TaskId b) {
  const std::uint32_t of_a = plan.tasks[a].match, of_b = plan.tasks[b].match;
  const auto replace = [&](std::uint32_t match, TaskId old, TaskId now) {
    for (std::uint32_t i = 0; i < plan.matches[match].count; ++i) {
      TaskId& member = plan.match_members[plan.matches[match].first + i];
      if (member == old) {
        member = now;
        return;
      }
    }
  };
  replace(of_a, a, b);
  replace(of_b, b, a);
  std::swap(plan.tasks[a].match, plan.tasks[b].match);
}

TEST(CheckPlan, SoundPlansPass) {
  EXPECT_EQ(fault_of(piped()), "");
  EXPECT_EQ(fault_of(unfold(piped())), "");
}

// One end, or the other, names a different stage than that of the other end.
TEST(CheckPlan, FindsTransfersThatLeadElsewhere) {
  for (const char* name : {"send activation", "receive activation"}) {
    Plan plan = piped();
    for (Op& op : plan.ops) {
      if (op.name == name) std::get<Transfer>(op.work).offset = 2;
    }
    EXPECT_NE(fault_of(plan).find("do not fit"), std::string::npos) << name << ": " << fault_of(plan);
  }
}

TEST(CheckPlan, FindsCollectivesOfOtherPlaces) {
  const Plan sound = make_plan(test::spec_of(test::kSmall, "data: 2, sharding: parameter-server, global_batch: 2"));
  Plan plan = sound;
  const TaskId push = tasks_of(plan, 1, "push gradients").front();
  plan.ops.push_back(plan.op_of(push));
  std::get<Collective>(plan.ops.back().work).first += 8;
  plan.tasks[push].op = static_cast<std::uint32_t>(plan.ops.size() - 1);
  EXPECT_NE(fault_of(plan).find("are one collective but differ"), std::string::npos) << fault_of(plan);
}

TEST(CheckPlan, FindsTransfersInAnotherOrder) {
  Plan plan = piped();
  const auto sends = tasks_of(plan, 0, "send activation");
  swap_matches(plan, sends[0], sends[1]);
  EXPECT_NE(fault_of(plan).find("deadlock"), std::string::npos);
}

TEST(CheckPlan, FindsCollectivesInAnotherOrder) {
  Plan plan = unfold(piped());
  std::vector<TaskId> reduces;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == Dimension::tensor && c->bytes == 32 * 64 * 2) reduces.push_back(t);
  }
  swap_matches(plan, reduces[0], reduces[1]);
  EXPECT_NE(fault_of(plan).find("deadlock"), std::string::npos);
}

// Two tasks that wait for each other: a stage receives the gradient of an activation that it has not sent yet.
TEST(CheckPlan, FindsACircle) {
  Plan plan = piped();
  const TaskId send = tasks_of(plan, 0, "send activation").front();
  const TaskId receive = tasks_of(plan, 0, "receive gradient").front();
  plan.dependencies[plan.tasks[send].first_dependency] = receive;
  EXPECT_NE(fault_of(plan).find("deadlock"), std::string::npos);
}

TEST(CheckPlan, FindsAMissingEnd) {
  Plan plan = piped();
  plan.tasks[tasks_of(plan, 1, "receive activation").front()].match = kNone;
  EXPECT_NE(fault_of(plan), "");
  Plan alone = piped();
  const std::uint32_t match = alone.tasks[tasks_of(alone, 1, "receive activation").front()].match;
  alone.matches[match].count = 1;
  EXPECT_NE(fault_of(alone), "");
}

TEST(CheckPlan, FindsOtherSizesAndParts) {
  const auto fault_with = [](Bytes shorter, std::int64_t parts) {
    Plan plan = piped();
    const TaskId receive = tasks_of(plan, 1, "receive activation").front();
    Op other = plan.op_of(receive);
    std::get<Transfer>(other.work).bytes -= shorter;
    std::get<Transfer>(other.work).parts = parts;
    plan.ops.push_back(other);
    plan.tasks[receive].op = static_cast<std::uint32_t>(plan.ops.size() - 1);
    return fault_of(plan);
  };
  EXPECT_EQ(fault_with(0, 1), "");
  EXPECT_NE(fault_with(2, 1).find("do not fit"), std::string::npos);
  EXPECT_NE(fault_with(0, 2).find("do not fit"), std::string::npos);
}

// One rank leaves a collective out: its tensor neighbour would wait for ever.
TEST(CheckPlan, FindsAMissingMember) {
  for (const char* name : {"reduce tied embedding", "reduce gradient norm"}) {
    Plan plan = piped();
    const TaskId missing = tasks_of(plan, 3, name).front();
    Op other = plan.op_of(missing);
    other.work = Fill{};
    plan.ops.push_back(other);
    const std::uint32_t match = plan.tasks[missing].match;
    plan.tasks[missing].op = static_cast<std::uint32_t>(plan.ops.size() - 1);
    plan.tasks[missing].match = kNone;
    --plan.matches[match].count;  // the last stage's task is the last member
    EXPECT_NE(fault_of(plan), "") << name;
  }
}

}  // namespace
}  // namespace orrery
