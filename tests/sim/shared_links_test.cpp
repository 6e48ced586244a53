#include "sim/shared_links.h"

#include <gtest/gtest.h>

#include "models/make_plan.h"
#include "models/spec.h"
#include "models/unfold.h"
#include "sim/price.h"

namespace orrery {
namespace {

struct Case {
  const char* cluster;
  const char* strategy;
  std::int64_t sharers;  // ranks of stage 0 on its representative's NIC; 0: no NIC of its is contested
};

Timing priced(const Spec& spec, const Plan& plan) { return price(plan, spec, find_profile(spec.cluster.gpu)).timing; }

Spec spec_of(const Case& c) {
  return parse_spec(std::string("model: {name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096}\n"
                                "sequence: 256\ncluster: ") +
                        c.cluster + "\nstrategy: " + c.strategy + "\n",
                    "test.yaml");
}

// A NIC is contested when several lanes of a rank, or several ranks, use it. Unfolded, every rank of a NIC has its
// link.
TEST(SharedLinks, NicsAreSharedByTheRanksBesideThem) {
  const std::vector<Case> cases = {
      {"{node: dgx-h100, nodes: 4}", "{tensor: 8, data: 4}", 0},               // one lane on its own NIC
      {"{node: dgx-h100, nodes: 4}", "{tensor: 8, pipeline: 2, data: 2}", 1},  // sends beside reductions
      {"{node: dgx-h100, nodes: 4, nics: 4}", "{tensor: 8, data: 4}", 2},      // two GPUs to a NIC
      {"{node: dgx-h100, nodes: 2, nics: 1}", "{tensor: 8, data: 2}", 8},      // eight to one
      {"{node: dgx-h100, nodes: 2, nics: 1}", "{tensor: 4, pipeline: 2, data: 2, rank_order: tp-cp-ep-pp-dp}", 4},
      {"{node: dgx-h100, nodes: 1}", "{tensor: 2, pipeline: 2, data: 2}", 0},  // all of it on NVLink
  };
  for (const Case& c : cases) {
    const Spec spec = spec_of(c);
    const Plan plan = make_plan(spec);
    const Timing folded = priced(spec, plan);
    const bool contested = !folded.links.empty() && folded.links.front().nic_out != kNone;
    EXPECT_EQ(contested ? folded.links.front().sharers : 0, c.sharers) << c.cluster << c.strategy;
    const Plan every = unfold(plan);
    const Timing unfolded = priced(spec, every);
    if (!contested) continue;
    std::int64_t same = 0;
    for (std::size_t s = 0; s < every.slots.size(); ++s) {
      if (every.slots[s].stage == 0 && unfolded.links[s].nic_out == unfolded.links[0].nic_out) ++same;
      EXPECT_EQ(unfolded.links[s].sharers, 1);
    }
    EXPECT_EQ(same, c.sharers) << c.cluster << c.strategy;
  }
}

}  // namespace
}  // namespace orrery
