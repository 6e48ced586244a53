#include "sim/search/layout_bound.h"

#include <algorithm>

#include "models/schedule/schedules.h"
#include "sim/search/host.h"
#include "sim/search/time_bound.h"

namespace orrery {
namespace {

// The least compute time of all blocks of the model for one micro-batch. Where a forward and a backward overlap op by
// op (`woven`), one may compute while the other waits for transfers, so that only the time of kernels is certain to be
// needed.
Picoseconds work_of(const ModelCost& cost, bool woven) {
  Picoseconds all = 0;
  const auto add = [&](const BlockCost& block) {
    for (const PassCost* pass : {&block.forward, &block.backward, &block.weight})
      all += woven ? pass->compute : pass->busy;
  };
  add(cost.embedding);
  add(cost.head);
  for (const BlockCost& layer : cost.layers) add(layer);
  return all + (cost.second ? work_of(*cost.second, woven) : 0);
}

// The least time in which a micro-batch's forward passes through one layer, plus the time in which its gradient passes
// back through the layer.
Picoseconds way_through(const ModelCost& cost, bool splits) {
  const auto way_of = [&](const BlockCost& layer) {
    return layer.forward.to_result() + (splits ? 0 : layer.backward.to_result() - layer.early);
  };
  Picoseconds way = way_of(cost.layers.front());
  for (const BlockCost& layer : cost.layers) way = std::min(way, way_of(layer));
  return way;
}

// A lower bound of the sum, over all pipeline stages, of the number of layers before the stage's first virtual stage.
// It holds for any number of virtual stages per stage. two: whether the pipeline may run two copies of the model, where
// a stage may also begin with a chunk of its mirror stage.
std::int64_t layers_ahead(BoundCache& cache, std::int64_t pipeline, bool two) {
  const auto [it, fresh] = cache.layers_ahead.try_emplace({pipeline, two}, 0);
  if (!fresh) return it->second;
  std::optional<std::int64_t> least;
  for (std::int64_t v = 1; v * pipeline <= cache.space.base().model.layers + 2; ++v) {
    const ModelCut& c = cut_of(cache, pipeline, v);
    if (c.layers.empty()) continue;
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < pipeline; ++s) sum += c.first[two ? std::min(s, pipeline - 1 - s) : s];
    least = std::min(least.value_or(sum), sum);
  }
  return it->second = least.value_or(0);
}

// The number of tokens to which rough_bound() shortens a sequence when it counts attention: the tokens of one context
// rank, halved as long as a half has at least 256 tokens and the tensor ranks divide it evenly.
std::int64_t own_tokens_of(const Spec& base, const RankLayout& l) {
  constexpr std::int64_t kShort = 256;
  if (base.images) return base.sequence;  // a shorter sequence has no room for the images' tokens
  std::int64_t own = base.sequence / l.context;
  while (own % 2 == 0 && own / 2 >= kShort && own / 2 % l.tensor == 0) own /= 2;
  return own;
}

}  // namespace

// The lower bound of the step time is the mean over stages of the work, without recomputation, plus the stages' mean
// idle time: at the beginning, while a micro-batch passes through the layers before the stage, and at the end, while
// the gradient passes back through them.
Picoseconds layout_bound(LayoutCosts& costs) {
  const RankLayout& layout = costs.layout;
  const Space& space = costs.cache.space;
  std::optional<Picoseconds> least;
  for (const ShardingClass kind : sharding_classes(space, layout)) {
    for (const bool splits : {false, true}) {
      if (splits && (layout.pipeline == 1 || !space.splits())) continue;
      const ModelCost& cost = model_cost_of(costs, "none", kind, splits);
      if (!cost.possible) continue;
      const std::int64_t ahead = layers_ahead(costs.cache, layout.pipeline, splits || kind == ShardingClass{});
      const Picoseconds idle = way_through(cost, splits) * ahead / layout.pipeline;
      const Picoseconds time = work_of(cost, splits) / layout.pipeline * layout.micro_batches + idle;
      least = std::min(least.value_or(time), time);
    }
  }
  return least.value_or(0);
}

bool has_rough_bound(const Spec& base, const RankLayout& layout) {
  const auto measured = [](const Model& m) { return m.moe && !m.moe->loads_file.empty(); };
  const bool as_measured = measured(base.model) || (base.second && measured(base.second->model));
  return !as_measured && own_tokens_of(base, layout) < base.sequence;
}

Picoseconds rough_bound(BoundCache& cache, const RankLayout& layout) {
  const Spec& base = cache.space.base();
  LayoutCosts costs(cache, layout);
  costs.own_tokens = own_tokens_of(base, layout);
  costs.layout.context = 1;
  costs.layout.context_kind = "ring";
  costs.layout.data = layout.replicas();
  costs.layout.micro_batch = layout.micro_batch * (base.sequence / layout.context / costs.own_tokens);
  return layout_bound(costs);
}

// All shardings with which a layer costs the same (one ShardingClass) share one bound, since their step times differ
// only by the optimizer update. The bound leaves out the update unless the host makes it.
Picoseconds group_bound(LayoutCosts& costs, const MemoryPlan& group) {
  const Space& space = costs.cache.space;
  const ShardingClass kind = sharding_class(space.base(), group);
  const auto [it, fresh] = costs.groups.try_emplace({group.schedule, group.virtual_stages, kind});
  GroupTime& known = it->second;
  if (fresh) {
    MemoryPlan one = group;
    if (!kind.host_gradients) one.offload = "none";
    const CellWork work = cell_work(costs, one);
    const TimeBound time = time_bound(costs, work);
    known = {time.on_device - time.least_update, fewest_elements(work)};
  }
  if (group.offload == "none") return known.time;
  const HostLoad load = host_load(space, cell_of(costs.layout, group), known.least);
  return std::max(known.time + load.update, load.beside);
}

}  // namespace orrery
