// Measures how many strategies a search enumerates and computes a bound for in a second, on one core. The aim is
// 500,000.
#include <benchmark/benchmark.h>

#include "sim/predict/predict.h"
#include "sim/search/bounds.h"

namespace orrery {
namespace {

// GPT-3 175B on 4,096 A100: every strategy with 8 tensor-parallel ranks and 4 to 16 pipeline stages. Data that
// strategies share (costs of blocks, rates of groups) are computed before the measurement, as they are for nearly all
// of a search.
void search_bounds(benchmark::State& state) {
  const Space space(parse_open_spec("model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 512}\n"
                                    "strategy: {tensor: 8, context: 1, global_batch: 4096}\n"
                                    "search: {pipeline: [4, 8, 16], micro_batch: [1, 2]}\n",
                                    "benchmark"),
                    4096);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  const auto bound_all = [&] {
    std::int64_t points = 0;
    for (const RankLayout& layout : space.layouts()) {
      LayoutCosts layout_costs(cache, layout);
      for (const MemoryPlan& cell : space.cells(layout)) {
        if (!is_possible(layout_costs, cell)) continue;
        const CellBounds bounds = cell_bounds(layout_costs, cell);
        for (const Features& features : space.features(layout, cell)) {
          benchmark::DoNotOptimize(bound_of(layout_costs, bounds, features));
          ++points;
        }
      }
    }
    return points;
  };
  bound_all();
  std::int64_t points = 0;
  for (auto _ : state) points += bound_all();
  state.SetItemsProcessed(points);
}
BENCHMARK(search_bounds)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
