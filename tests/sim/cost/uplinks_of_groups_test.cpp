#include <string>
#include <variant>

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

// Uplinks slow the all-reduce of the embedding most often over, and add most time to the all-to-alls.
TEST(Uplinks, SayWhichTransfersTheyLengthenMost) {
  const Spec spec = load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/deepseek-v3-2048.yaml",
                              {"cluster.network={leaf: {nodes: 4, uplinks: 1}}"});
  const Prediction p = predict(spec);
  const auto* named = std::get_if<Collective>(&p.plan.ops[p.costs.busiest.op].work);
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->kind, CollectiveKind::all_to_all);
}

}  // namespace
}  // namespace orrery
