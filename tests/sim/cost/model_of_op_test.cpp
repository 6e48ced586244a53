#include "sim/cost/model_of_op.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

// Both models send tokens to experts node by node, and their tokens choose unlike numbers of experts.
TEST(ModelOfOp, TellsTheOpsOfBothModelsApart) {
  const Spec spec = parse_spec(
      "model: {layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 256, moe: {experts: 8, top_k: 2, "
      "feed_forward: "
      "48}}\nteacher: {layers: 2, hidden: 32, heads: 4, feed_forward: 96, vocab: 256, moe: {experts: 8, top_k: 4, "
      "feed_forward: 48}}\nsequence: 64\ncluster: {node: dgx-h100, nodes: 1}\nstrategy: {data: 2, expert: 2}\n",
      "t.yaml");
  const Plan plan = make_plan(spec);
  std::size_t gates = 0;
  for (std::uint32_t op = 0; op < plan.ops.size(); ++op) {
    const auto* gate = std::get_if<Gate>(&plan.ops[op].work);
    if (gate == nullptr) continue;
    EXPECT_EQ(model_of_op(spec, plan, op).moe->top_k, gate->top_k);
    gates += gate->top_k == 4 ? 1 : 0;
  }
  EXPECT_GT(gates, 0U);
}

}  // namespace
}  // namespace orrery
