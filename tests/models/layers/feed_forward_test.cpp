#include "models/layers/feed_forward.h"

#include <map>

#include <gtest/gtest.h>

#include "models/plan/check.h"
#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Plan plan_with(const std::string& model, const std::string& strategy, const std::string& software) {
  Spec spec = test::spec_of(
      "name: clamped, layers: 1, hidden: 64, heads: 8, vocab: 256, feed_forward: 96, activation_clamp: 7" + model,
      "tensor: 1, data: 1, precision: bf16, global_batch: 1, micro_batch: 1" + strategy, 64);
  spec.software.kernels.fused_clamp = software == "fused";
  return make_plan(spec);
}

// Counts ops by their name, of one step.
std::map<std::string, int> counts(const Plan& plan) {
  std::map<std::string, int> all;
  for (TaskId t = 0; t < plan.classes[0].end; ++t) ++all[std::string(plan.op_of(t).name)];
  return all;
}

TEST(FeedForward, AFusedClampIsPartOfTheActivation) {
  const Plan plan = plan_with("", "", "fused");
  std::map<std::string, int> all = counts(plan);
  EXPECT_EQ(all["activation clamp"], 0);
  for (TaskId t = 0; t < plan.classes[0].end; ++t) {
    const auto* a = std::get_if<Activation>(&plan.op_of(t).work);
    EXPECT_EQ(a == nullptr ? 7 : a->limit, 7);
  }
}

// The clamp apart has one op forward and one backward; the activation reads what it wrote and has no limit of its own.
TEST(FeedForward, AClampApartComesBeforeTheActivation) {
  const Plan plan = plan_with("", "", "apart");
  EXPECT_NO_THROW(check_plan(unfold(plan)));
  std::map<std::string, int> all = counts(plan);
  EXPECT_EQ(all["activation clamp"], 1);
  EXPECT_EQ(all["activation clamp gradient"], 1);
  const auto slot = [](const Op& op, Access access) {
    return std::find_if(op.operands.begin(), op.operands.end(), [&](const Operand& o) { return o.access == access; })
        ->slot;
  };
  int clamped = -1;
  for (TaskId t = 0; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    if (std::holds_alternative<Clamp>(op.work) && op.phase == Phase::forward) clamped = slot(op, Access::write);
    const auto* a = std::get_if<Activation>(&op.work);
    if (a == nullptr) continue;
    EXPECT_EQ(a->limit, 0);
    EXPECT_EQ(slot(op, Access::read), clamped);
  }
}

// A clamp runs again in backward where its activation does.
TEST(FeedForward, AClampRunsAgainWithItsActivation) {
  std::map<std::string, int> all =
      counts(plan_with(", moe: {experts: 4, top_k: 2, feed_forward: 32}", ", recompute: [moe_activation]", "apart"));
  EXPECT_EQ(all["experts activation clamp"], 1);
  EXPECT_EQ(all["experts activation clamp again"], 1);
  EXPECT_EQ(all["experts activation clamp gradient"], 1);
}

}  // namespace
}  // namespace orrery
