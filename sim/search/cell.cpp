#include "sim/search/cell.h"

#include <algorithm>

#include "models/partition/layers_of_stages.h"
#include "models/spec/sharding.h"

namespace orrery {

SearchCell cell_of(const RankLayout& layout, const MemoryPlan& memory_plan) {
  const std::int64_t copies = model_copies(memory_plan.schedule);
  return {layout, memory_plan, copies, layout.micro_batches / copies};
}

std::int64_t own_elements(const SearchCell& cell, const StageWeights& weights) {
  const ShardingRow& row = row_of(cell.memory_plan.sharding);
  if (!row.shards_optimizer) return weights.elements + weights.expert_elements;
  const RankLayout& l = cell.layout;
  const std::int64_t group = row.hybrid ? cell.memory_plan.shard_group : l.replicas();
  const std::int64_t expert_copies =
      cell.copies * std::max<std::int64_t>(1, l.tensor * group / (l.expert * l.expert_tensor));
  return ceil_div(weights.elements, group * cell.copies) + ceil_div(weights.expert_elements, expert_copies);
}

ScheduleShape schedule_shape(const Spec& base, const SearchCell& cell) {
  const RankLayout& l = cell.layout;
  return {.stages = l.pipeline,
          .micro_batches = l.micro_batches,
          .chunks = cell.memory_plan.virtual_stages,
          .times = {},
          .group = interleave_group(base, l.pipeline, l.micro_batches),
          .extra_warm_up = base.strategy.extra_warm_up};
}

bool in_megatron_order(const Spec& base, const SearchCell& cell) {
  const ScheduleShape s = schedule_shape(base, cell);
  return !find_schedule(cell.memory_plan.schedule).takes_turns ||
         (s.micro_batches % s.stages == 0 && s.group == s.stages && s.extra_warm_up == 0);
}

}  // namespace orrery
