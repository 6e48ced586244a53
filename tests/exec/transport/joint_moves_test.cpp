#include "exec/transport/joint_moves.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/exec/collective_trial.h"
#include "tests/exec/host_queue.h"

namespace orrery {
namespace {

// Every collective algorithm, carried out for all members at once, computes the collective's result, for every size.
TEST(JointMoves, EndWithWhatTheKindPromises) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const Plan plan = plan_of(ranks);
    for (CollectiveCase c : all_cases()) {
      if (c.group != Dimension::world) continue;
      std::vector<std::unique_ptr<Trial>> trials;
      std::vector<CollectiveCall> calls;
      for (int r = 0; r < ranks; ++r) {
        trials.push_back(std::make_unique<Trial>(plan, r, c));
        calls.push_back(trials.back()->call());
      }
      std::vector<const CollectiveCall*> pointers;
      for (const CollectiveCall& call : calls) pointers.push_back(&call);
      test::HostQueue queue;
      carry_out(pointers, queue);
      for (const auto& t : trials) t->expect();
    }
  }
}

TEST(JointMoves, MembersMustCallTheSame) {
  float x = 0;
  const CollectiveCall a{.in = &x, .out = &x, .counts = {1}};
  CollectiveCall b = a;
  b.reduction = Reduction::maximum;
  const CollectiveCall* both[] = {&a, &b};
  test::HostQueue queue;
  EXPECT_THROW(carry_out(both, queue), Error);
}

}  // namespace
}  // namespace orrery
