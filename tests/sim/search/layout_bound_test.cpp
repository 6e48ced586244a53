#include "sim/search/layout_bound.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "sim/search/search.h"

namespace orrery {
namespace {

void expect_rough_ones_below(const std::string& spec, std::size_t least) {
  const Space space(parse_open_spec(spec, "t.yaml"), 32);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  std::size_t compared = 0;
  for (const RankLayout& layout : space.layouts()) {
    ASSERT_TRUE(has_rough_bound(space.base(), layout));
    LayoutCosts layout_costs(cache, layout);
    const Picoseconds rough = rough_bound(cache, layout), own = layout_bound(layout_costs);
    if (own == 0) continue;
    EXPECT_GT(rough, 0) << layout.context_kind << layout.context;
    EXPECT_LE(rough, own) << layout.context_kind << " " << layout.context << " tensor " << layout.tensor;
    ++compared;
  }
  EXPECT_GT(compared, least);
}

// Long rings and other context groups: the cheap bound of a layout is below its exact bound.
TEST(SearchLayoutBound, RoughOnesAreBelow) {
  expect_rough_ones_below(
      "model: llama-3.2-1b\nsequence: 8192\ncluster: {node: dgx-h100, nodes: 4}\n"
      "strategy: {global_batch: 32, schedule: 1f1b}\n"
      "search: {context: [4, 8, 16, 32], tensor: [1, 2], micro_batch: [1, 2]}\n",
      50);
}

// Expert groups reach over context ranks; the bound counts the latter as data ranks.
TEST(SearchLayoutBound, RoughOnesWithExpertsAreBelow) {
  expect_rough_ones_below(
      "model: qwen1.5-moe-a2.7b\nsequence: 4096\ncluster: {node: dgx-h100, nodes: 4}\n"
      "strategy: {global_batch: 32, schedule: 1f1b, context_kind: allgather}\n"
      "search: {context: [1, 2, 8], tensor: [1, 2], expert: [1, 4, 20], micro_batch: [1, 2]}\n",
      50);
}

}  // namespace
}  // namespace orrery
