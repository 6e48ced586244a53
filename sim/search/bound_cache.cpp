#include "sim/search/bound_cache.h"

#include <algorithm>
#include <numeric>

#include "models/layers/blocks.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

namespace orrery {

const ModelCost& model_cost_of(LayoutCosts& costs, std::string_view recompute, ShardingClass kind, bool splits,
                               bool leaves) {
  const ModelCost*& found = costs.stacks[{recompute, kind, splits, leaves}];
  if (found != nullptr) return *found;
  const RankLayout& l = costs.layout;
  ModelCostKey key{.tensor = l.tensor,
                   .context = l.context,
                   .expert = l.expert,
                   .expert_tensor = l.expert_tensor,
                   .micro_batch = l.micro_batch,
                   .data = kind.sharding == Sharding::none || l.data == 1 ? 1 : 2,
                   .sequence = costs.own_tokens,
                   .context_kind = std::string(l.context_kind),
                   .recompute = std::string(recompute),
                   .sharding = kind.sharding,
                   .sequence_parallel = l.sequence_parallel,
                   .overlap_tensor = l.overlap_tensor,
                   .overlap_expert = l.overlap_expert,
                   .splits_backward = splits,
                   .host_gradients = kind.host_gradients,
                   .leaves = leaves};
  if (has_experts(costs.cache.space.base())) {
    const std::int64_t inner = l.tensor * l.context, experts = l.expert * l.expert_tensor;
    const std::int64_t least = experts / std::gcd(experts, inner);
    key.data = std::max(key.data, least);
    while (key.data > 1 && inner * key.data % experts != 0) ++key.data;
  }
  found = &costs.cache.stacks.of(key);
  return *found;
}

static ModelCut with_first_layers(std::vector<std::int64_t> layers) {
  ModelCut cut{std::move(layers), {}};
  if (cut.layers.empty()) return cut;
  cut.first.assign(cut.layers.size(), 0);
  std::partial_sum(cut.layers.begin(), cut.layers.end() - 1, cut.first.begin() + 1);
  return cut;
}

const ModelCut& cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages) {
  const auto [it, fresh] = cache.cuts.try_emplace({pipeline, virtual_stages});
  if (fresh) it->second = with_first_layers(cache.space.cut(pipeline, virtual_stages));
  return it->second;
}

const ModelCut& second_cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages) {
  const auto [it, fresh] = cache.second_cuts.try_emplace({pipeline, virtual_stages});
  if (fresh) it->second = with_first_layers(cache.space.second_cut(pipeline, virtual_stages));
  return it->second;
}

const PlacedChunks& chunks_of(BoundCache& cache, const SearchCell& cell) {
  const ScheduleRow& row = find_schedule(cell.memory_plan.schedule);
  const std::int64_t p = cell.layout.pipeline, v = cell.memory_plan.virtual_stages;
  const auto [it, fresh] = cache.placed.try_emplace({row.placement, row.copies, p, v});
  if (!fresh) return it->second;
  it->second = {place_chunks(row.placement, {.stages = p, .chunks = v}, row.copies), {}};
  it->second.of_stage.resize(p);
  const std::vector<std::int32_t>& stage_of = it->second.where.stage_of;
  for (std::size_t k = 0; k < stage_of.size(); ++k)
    it->second.of_stage[stage_of[k]].push_back(static_cast<std::int64_t>(k));
  return it->second;
}

ShardingClass sharding_class(const Spec& base, Sharding sharding) {
  const ShardingRow& row = row_of(sharding);
  return {unit_gradients(base, row) || row.shards_parameters ? bounding(row) : Sharding::none};
}

ShardingClass sharding_class(const Spec& base, const MemoryPlan& memory_plan) {
  Offload away;
  set_offload(away, memory_plan.offload);
  if (away.gradients == MemoryTier::device) return sharding_class(base, memory_plan.sharding);
  return {with_host_gradients(row_of(memory_plan.sharding)), true};
}

bool reduces_units(const Spec& base, const MemoryPlan& memory_plan) {
  return sharding_class(base, memory_plan).host_gradients || unit_gradients(base, row_of(memory_plan.sharding));
}

// Lists the classes of shardings (ZeRO stages) with which a layer costs the same. A class with gradients on the host is
// listed only where that changes the cost of a layer: where the device does not reduce gradients unit by unit (as FSDP
// does), or where no other rank shares the gradients.
std::vector<ShardingClass> sharding_classes(const Space& space, const RankLayout& layout) {
  std::vector<ShardingClass> result;
  for (const ShardingRow& row : sharding_rows()) {
    if (!row.bounds.empty() || row.master || row.servers) continue;
    const Sharding sharding = sharding_of(row);
    const bool own = sharding_class(space.base(), sharding).sharding == sharding, alone = layout.replicas() == 1;
    if (own) result.push_back({sharding});
    if ((!own || alone) && (alone || sharding != Sharding::none) && space.offloads_gradients())
      result.push_back({sharding, true});
  }
  return result;
}

}  // namespace orrery
