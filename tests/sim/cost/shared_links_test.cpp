#include "sim/cost/shared_links.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/cost/costs.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

constexpr auto kData = static_cast<std::size_t>(Dimension::data);

struct SharedCase {
  const char* cluster;
  const char* strategy;
  std::int64_t data_groups;  // data groups on the NIC of stage 0's representative; 0: none of its NICs is contested
  std::int64_t hidden = 512;
};

Timing priced(const Spec& spec, const Plan& plan) {
  return costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing;
}

Spec spec_of(const SharedCase& c) {
  return parse_spec(fmt::format("model: {{name: t, layers: 8, hidden: {}, heads: 8, feed_forward: {}, vocab: 4096}}\n"
                                "sequence: 256\ncluster: {}\nstrategy: {}\n",
                                c.hidden, 4 * c.hidden, c.cluster, c.strategy),
                    "test.yaml");
}

// A NIC is contested when several lanes, or several groups, use it; the members of one collective beside it are one
// flow.
TEST(SharedLinks, GroupsShareTheNicsBesideThem) {
  const std::vector<SharedCase> cases = {
      {"{node: dgx-h100, nodes: 4}", "{tensor: 8, data: 4}", 0},               // one lane on its own NIC
      {"{node: dgx-h100, nodes: 4}", "{tensor: 8, pipeline: 2, data: 2}", 1},  // sends beside reductions
      {"{node: dgx-h100, nodes: 4, nics: 4}", "{tensor: 8, data: 4}", 2},      // two groups to a NIC
      {"{node: dgx-h100, nodes: 2, nics: 1}", "{tensor: 8, data: 2}", 8},      // eight to one
      {"{node: dgx-h100, nodes: 2, nics: 1}", "{data: 16}", 0},                // one group, all eight members of a node
      {"{node: dgx-h100, nodes: 2, nics: 1}", "{tensor: 4, pipeline: 2, data: 2, rank_order: tp-cp-ep-pp-dp}", 4},
      {"{node: dgx-h100, nodes: 1}", "{tensor: 2, pipeline: 2, data: 2}", 0},  // all of it on NVLink
  };
  for (const SharedCase& c : cases) {
    const Spec spec = spec_of(c);
    const Plan plan = make_plan(spec);
    const Timing folded = priced(spec, plan);
    const bool contested = !folded.links.empty() && folded.links.front().nic_out != kNone;
    EXPECT_EQ(contested ? folded.links.front().flows[kData] : 0, c.data_groups) << c.cluster << c.strategy;
    if (!contested) continue;
    const Plan every = unfold(plan);
    const Timing unfolded = priced(spec, every);
    std::int64_t carriers = 0;
    for (std::size_t s = 0; s < every.classes.size(); ++s) {
      if (every.classes[s].stage == 0 && unfolded.links[s].nic_out == unfolded.links[0].nic_out)
        carriers += unfolded.links[s].flows[kData];
    }
    EXPECT_EQ(carriers, c.data_groups) << c.cluster << c.strategy;
  }
}

// One group that fills a node's only NIC takes what NCCL alone would take; eight of them side by side eight times that,
// where their transfers are long beside the wait for late members.
TEST(SharedLinks, ACollectiveDoesNotContendWithItself) {
  const auto reduce_time = [](const char* strategy) {
    const Spec spec = spec_of({"{node: dgx-h100, nodes: 2, nics: 1}", strategy, 0, 2048});
    const Plan plan = make_plan(spec);
    const Timing timing = priced(spec, plan);
    const Trace trace = simulate(plan, timing);
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (plan.op_of(t).name != "reduce gradients") continue;
      const Picoseconds alone = timing.of(plan.slot_of(t), plan.tasks[t].op).duration;
      return static_cast<double>(trace.spans[t].ended - trace.spans[t].matched) / static_cast<double>(alone);
    }
    return 0.0;
  };
  EXPECT_NEAR(reduce_time("{data: 16, overlap: {gradient_reduce: false}}"), 1, 0.01);
  EXPECT_GT(reduce_time("{tensor: 8, data: 2, overlap: {gradient_reduce: false}}"), 4);
}

}  // namespace
}  // namespace orrery
