#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/cost/uplinks.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// Three expert groups of two nodes each; leaves of three nodes cut the second alone, for which the others wait.
TEST(Uplinks, SlowTheStepWhereTheyCutAGroupThatIsNotTheFirst) {
  const auto step = [](const char* leaf, bool unfolded) {
    const Spec spec = parse_spec(
        fmt::format("model: mixtral-8x7b\nsequence: 4096\nsoftware: megatron-core\n"
                    "cluster: {{node: dgx-h100, nodes: 6, network: {{leaf: {}}}}}\n"
                    "strategy: {{tensor: 4, expert: 4, data: 12, micro_batch: 1, global_batch: 24, sharding: zero1, "
                    "recompute: full}}\n",
                    leaf),
        "cut.yaml");
    return predict(spec, unfolded).report.step_time_s;
  };
  const double whole = step("{nodes: 2, uplinks: 1}", false), cut = step("{nodes: 3, uplinks: 1}", false);
  EXPECT_GT(cut, 1.002 * whole);
  EXPECT_NEAR(cut, step("{nodes: 3, uplinks: 1}", true), 3e-3 * cut);
}

// An all-to-all is slowed four times by its leaf's uplinks, and takes most of the step; the table's small all-reduce
// may be slowed more, but by less time.
TEST(Uplinks, SayWhichTransfersTheyLengthenMost) {
  const Spec spec = parse_spec(
      "model: mixtral-8x7b\nsequence: 4096\nsoftware: megatron-core\n"
      "cluster: {node: dgx-h100, nodes: 8, network: {leaf: {nodes: 1, uplinks: 1}, spine: {leaves: 4, ratio: 8}}}\n"
      "strategy: {expert: 8, data: 64, micro_batch: 1, global_batch: 64, sharding: zero1, rank_order: tp-cp-dp-pp}\n",
      "most.yaml");
  const Prediction p = predict(spec);
  const UplinkUse& use = p.costs.busiest;
  ASSERT_GT(use.added, 0);
  double most = 0;
  for (const CommunicationRow& row : p.report.communication) most = std::max(most, row.time_s);
  EXPECT_GT(use.added, 0.2 * most);
}

}  // namespace
}  // namespace orrery
