#include "sim/price.h"

#include <gtest/gtest.h>

#include "models/make_plan.h"

namespace orrery {
namespace {

struct Priced {
  Spec spec;
  Plan plan;
  Prices prices;

  explicit Priced(const std::string& strategy, const std::string& software = "megatron-core")
      : spec(parse_spec("model: {name: small, layers: 16, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\n"
                        "sequence: 1024\ncluster: {node: dgx-h100, nodes: 2}\nsoftware: " +
                            software + "\nstrategy: {" + strategy + "}\n",
                        "case")),
        plan(make_plan(spec)),
        prices(price(plan, spec, find_profile(spec.cluster.gpu))) {}

  const OpTiming& of(TaskId t) const { return prices.timing.of(plan.slot_of(t), plan.tasks[t].op); }
};

// Stages 0 and 1 lie on one node, 2 and 3 on the other; with virtual stages the last also sends to the first.
TEST(Price, BothEndsOfAHopCostWhatTheHopDoes) {
  for (const char* strategy : {"tensor: 4, pipeline: 4, data: 1, virtual_stages: 2, global_batch: 8",
                               "tensor: 4, pipeline: 4, data: 1, global_batch: 8",
                               "tensor: 2, pipeline: 8, data: 1, virtual_stages: 2, global_batch: 8"}) {
    const Priced p(strategy);
    for (std::uint32_t m = 0; m < p.plan.matches.size(); ++m) {
      const auto members = p.plan.members_of(m);
      const auto node = [&](TaskId t) { return p.plan.slots[p.plan.slot_of(t)].representative / 8; };
      for (const TaskId t : members) ASSERT_EQ(p.of(t).duration, p.of(members.front()).duration) << strategy;
      if (std::holds_alternative<Transfer>(p.plan.op_of(members.front()).work)) {
        ASSERT_EQ(p.of(members.front()).nic > 0, node(members.front()) != node(members.back())) << strategy;
      }
    }
  }
}

TEST(Price, CudaGraphsIssueForNothing) {
  const Priced p("data: 2, global_batch: 4", "{profile: nanotron, cuda_graphs: true}");
  for (TaskId t = 0; t < p.plan.task_count(); ++t) ASSERT_EQ(p.of(t).issue, 0);
}

// What a stack's host spends per layer is charged once per layer and pass.
TEST(Price, HostPaysPerLayerAndPass) {
  const auto issue = [](const std::string& software) {
    const Priced p("data: 1, global_batch: 1", software);
    Picoseconds sum = 0;
    for (TaskId t = 0; t < p.plan.task_count(); ++t) sum += p.of(t).issue;
    return sum;
  };
  const Picoseconds plain = issue("{profile: orrery, layer_us: 0, micro_batch_us: 0, step_us: 0}");
  EXPECT_EQ(issue("{profile: orrery, layer_us: 10, micro_batch_us: 0, step_us: 0}") - plain, 2 * 16 * 10'000'000);
  EXPECT_EQ(issue("{profile: orrery, layer_us: 0, micro_batch_us: 10, step_us: 0}") - plain, 2 * 10'000'000);
  EXPECT_EQ(issue("{profile: orrery, layer_us: 0, micro_batch_us: 0, step_us: 10}") - plain, 10'000'000);
}

}  // namespace
}  // namespace orrery
