#include "sim/cost/model_of_op.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/cost/costs.h"

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
  const std::vector<const Model*> models = models_of_ops(spec, plan);
  std::size_t gates = 0;
  for (std::uint32_t op = 0; op < plan.ops.size(); ++op) {
    const auto* gate = std::get_if<Gate>(&plan.ops[op].work);
    if (gate == nullptr) continue;
    EXPECT_EQ(models[op]->moe->top_k, gate->top_k);
    gates += gate->top_k == 4 ? 1 : 0;
  }
  EXPECT_GT(gates, 0U);
}

// The ranks on other nodes that a token's experts lie on follow from its own model: the teacher's transfers take as
// long beside a student as where the teacher trains alone.
TEST(ModelOfOp, SendsTheTeachersTokensAsTheTeacherAloneWould) {
  const auto transfers = [](const std::string& models, bool second) {
    const Spec spec = parse_spec(models +
                                     "sequence: 64\ncluster: {node: dgx-h100, nodes: 2}\nsoftware: orrery\nstrategy: "
                                     "{data: 16, expert: 16}\n",
                                 "t.yaml");
    const Plan plan = make_plan(spec);
    const Costs costs = costs_of(plan, spec, find_profile(spec.cluster.gpu));
    std::set<Picoseconds> times;
    for (const Block& block : plan.blocks) {
      if (block.second != second) continue;
      for (const std::uint32_t op : block.forward) {
        const auto* c = std::get_if<Collective>(&plan.ops[op].work);
        if (c != nullptr && c->algorithm.starts_with("hierarchical")) times.insert(costs.timing.of(0, op).duration);
      }
    }
    return times;
  };
  const std::string shape = "{layers: 2, hidden: 2048, heads: 4, feed_forward: 96, vocab: 256",
                    teacher = shape + ", moe: {experts: 16, top_k: 6, feed_forward: 48, dispatch: hierarchical}}\n",
                    student = shape + ", moe: {experts: 16, top_k: 1, feed_forward: 48, dispatch: hierarchical}}\n";
  const std::set<Picoseconds> alone = transfers("model: " + teacher, false);
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(transfers("model: " + student + "teacher: " + teacher, true), alone);
  EXPECT_EQ(transfers("model: " + shape + "}\nteacher: " + teacher, true), alone);
  EXPECT_NE(transfers("model: " + student, false), alone);
}

}  // namespace
}  // namespace orrery
