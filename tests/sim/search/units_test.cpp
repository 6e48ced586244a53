#include "sim/search/units.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/predict/predict.h"
#include "sim/search/bounds.h"
#include "sim/search/search.h"

namespace orrery {
namespace {

// Compares the bounds of all memory plans of a space, each with its first overlaps and order of ranks, with simulated
// steps. least: share of the step that the bound is at least. Returns the number of memory plans.
std::size_t compare_with_steps(const std::string& keys, double least) {
  const Space space(
      parse_open_spec("model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 512}\n" + keys, "t.yaml"),
      4096);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  std::size_t compared = 0;
  for (const RankLayout& layout : space.layouts()) {
    LayoutCosts layout_costs(cache, layout);
    for (const MemoryPlan& cell : space.cells(layout)) {
      const Features features = space.features(layout, cell).front();
      const double bound = seconds(bound_of(layout_costs, cell_bounds(layout_costs, cell), features).time);
      const double step = evaluate(space, profile, {layout, cell, features}).value().step_time_s;
      EXPECT_LE(bound, step) << space.text_of({layout, cell, features});
      EXPECT_GT(bound, least * step) << space.text_of({layout, cell, features});
      ++compared;
    }
  }
  return compared;
}

// Weights gathered and gradients reduced layer by layer, beside tensor communication that hides under compute: the
// bounds include the waits for the first gathers and the last reductions, and the slowdown of kernels.
TEST(SearchBounds, AreCloseWhereUnitsMoveUnderCompute) {
  EXPECT_EQ(compare_with_steps(
                "strategy: {global_batch: 4096, micro_batch: 8, tensor: 8, context: 1, pipeline: 1, recompute: none, "
                "sequence_parallel: true, overlap: {tensor: true}}\n"
                "search: {sharding: [zero3, fsdp, hsdp], shard_group: [64, 256], offload: [none]}\n",
                0.988),
            4U);
}

// Two copies of the model reduce the gradients of a stage over the ranks of both: the bounds include these transfers,
// which take longer than all kernels here.
TEST(SearchBounds, AreCloseWhereTwoCopiesShareGradients) {
  EXPECT_EQ(compare_with_steps(
                "strategy: {global_batch: 4096, micro_batch: 4, tensor: 4, context: 1, pipeline: 2, recompute: none, "
                "schedule: chimera, sequence_parallel: true, rank_order: tp-cp-dp-pp, overlap: {tensor: true}}\n"
                "search: {sharding: [none, zero1, zero3, fsdp, fsdp-grad-op, hsdp], shard_group: [128], "
                "offload: [none]}\n",
                0.88),
            6U);
}

}  // namespace
}  // namespace orrery
