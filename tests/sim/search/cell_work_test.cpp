#include "sim/search/cell_work.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// A space of layouts that differ in nothing but the stages.
Space stages_only() {
  return Space(
      parse_open_spec(
          "model: {name: small, layers: 12, hidden: 1024, heads: 8, feed_forward: 4096, vocab: "
          "32000}\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 1}\n"
          "strategy: {global_batch: 16, micro_batch: 1, tensor: 1, context: 1, recompute: none, "
          "sharding: none}\n"
          "search: {pipeline: [1, 2, 4], schedule: [1f1b, interleaved], virtual_stages: [1, 3], offload: [none]}\n",
          "t.yaml"),
      8);
}

struct WholeWork {
  Picoseconds compute = 0;
  std::int64_t elements = 0, layers = 0;
  Bytes kept = 0;

  friend bool operator==(const WholeWork&, const WholeWork&) = default;
};

// However the model is cut, the stages together compute, hold and keep the same.
TEST(SearchCellWork, StagesAddUpToTheModel) {
  const Space space = stages_only();
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache stacks(space.base(), profile);
  BoundCache cache(space, profile, stacks);
  std::vector<WholeWork> all;
  for (const RankLayout& layout : space.layouts()) {
    LayoutCosts costs(cache, layout);
    for (const MemoryPlan& memory_plan : space.cells(layout)) {
      if (!is_possible(costs, memory_plan)) continue;
      const CellWork work = cell_work(costs, memory_plan);
      WholeWork sum;
      for (const StageWork& s : work.stages) {
        sum.compute += s.forward.compute + s.backward.compute + s.weight.compute;
        sum.elements += s.weights.elements;
        sum.layers += s.layers;
        EXPECT_GE(s.weights.elements, fewest_elements(work).elements);
      }
      for (const ChunkWork& c : work.chunk_works) sum.kept += c.kept;
      EXPECT_EQ(std::ssize(work.stages), layout.pipeline);
      all.push_back(sum);
    }
  }
  ASSERT_GT(all.size(), 3U);
  EXPECT_EQ(all.front().layers, 12);
  for (const WholeWork& other : all) EXPECT_EQ(other, all.front());
}

TEST(SearchCellWork, CountsTheLayersThatRunAgain) {
  EXPECT_EQ(most_again({.recompute = "none", .recompute_layers = 3}, 12), 0);
  EXPECT_EQ(most_again({.recompute = "full", .recompute_layers = 3}, 12), 3);
  EXPECT_EQ(most_again({.recompute = "full", .recompute_layers = -1}, 12), 12);
}

}  // namespace
}  // namespace orrery
