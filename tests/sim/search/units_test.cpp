#include "sim/search/units.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "sim/search/bounds.h"
#include "sim/search/search.h"

namespace orrery {
namespace {

// Weights gathered and gradients reduced layer by layer, beside tensor communication that hides under compute: the
// bounds include the waits for the first gathers and the last reductions, and the slowdown of kernels.
TEST(SearchBounds, AreCloseWhereUnitsMoveUnderCompute) {
  const Space space(
      parse_open_spec(
          "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 512}\n"
          "strategy: {global_batch: 4096, micro_batch: 8, tensor: 8, context: 1, pipeline: 1, recompute: none, "
          "sequence_parallel: true, overlap: {tensor: true}}\n"
          "search: {sharding: [zero3, fsdp, hsdp], shard_group: [64, 256], offload: [none]}\n",
          "t.yaml"),
      4096);
  const Profile profile = profile_for(space.base(), "");
  StackCosts costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  std::size_t compared = 0;
  for (const RankLayout& layout : space.layouts()) {
    LayoutCosts layout_costs(cache, layout);
    for (const MemoryPlan& cell : space.cells(layout)) {
      const Features features = space.features(layout, cell).front();
      const double bound = seconds(bound_of(layout_costs, cell_bounds(layout_costs, cell), features).time);
      const double step = evaluate(space, profile, {layout, cell, features}).value().step_time_s;
      EXPECT_LE(bound, step) << space.text_of({layout, cell, features});
      EXPECT_GT(bound, 0.988 * step) << space.text_of({layout, cell, features});
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4U);
}

}  // namespace
}  // namespace orrery
