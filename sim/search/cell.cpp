#include "sim/search/cell.h"

#include <algorithm>

#include "models/partition/layers_of_stages.h"
#include "models/spec/sharding.h"

namespace orrery {

Cell cell_of(const Degrees& layout, const Recipe& recipe) {
  const std::int64_t copies = model_copies(recipe.schedule);
  return {layout, recipe, copies, layout.micro_batches / copies};
}

std::int64_t own_elements(const Cell& cell, const StageWeights& weights) {
  const ShardingRow& row = row_of(cell.recipe.sharding);
  if (!row.shards_optimizer) return weights.elements + weights.expert_elements;
  const Degrees& l = cell.layout;
  const std::int64_t group = row.hybrid ? cell.recipe.shard_group : l.replicas();
  const std::int64_t expert_copies =
      cell.copies * std::max<std::int64_t>(1, l.tensor * group / (l.expert * l.expert_tensor));
  return ceil_div(weights.elements, group * cell.copies) + ceil_div(weights.expert_elements, expert_copies);
}

ScheduleShape schedule_shape(const Spec& base, const Cell& cell) {
  const Degrees& l = cell.layout;
  return {.stages = l.pipeline,
          .micro_batches = l.micro_batches,
          .chunks = cell.recipe.virtual_stages,
          .times = {},
          .group = interleave_group(base, l.pipeline, l.micro_batches),
          .extra_warm_up = base.strategy.extra_warm_up};
}

bool in_usual_turns(const Spec& base, const Cell& cell) {
  const ScheduleShape s = schedule_shape(base, cell);
  return !find_schedule(cell.recipe.schedule).takes_turns ||
         (s.micro_batches % s.stages == 0 && s.group == s.stages && s.extra_warm_up == 0);
}

}  // namespace orrery
