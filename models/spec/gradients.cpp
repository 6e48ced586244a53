#include "models/spec/gradients.h"

namespace orrery {

bool unit_gradients(const Spec& spec, const ShardingRow& row) {
  const bool sharded =
      row.shards_gradients && (row.shards_parameters || !spec.software.communication.keep_gradients_whole);
  return sharded || spec.strategy.offload.gradients != MemoryTier::device;
}

Averaging averaging(const Spec& spec, const ShardingRow& row) {
  const Strategy& s = spec.strategy;
  const Software::Communication& w = spec.software.communication;
  const std::int64_t group = row.hybrid ? s.shard_group : s.data * s.context * s.tensor_depth;
  if (group == 1 || row.master || row.servers || !s.stage_replicas.empty()) return Averaging::none;
  const bool units = unit_gradients(spec, row);
  if (!units) return w.gradient_average;
  const bool scales =
      w.unit_average == UnitAveraging::scale ||
      (w.unit_average == UnitAveraging::scale_or_premultiply && s.gradient_precision != Precision::fp32);
  return scales ? Averaging::scale : Averaging::none;
}

}  // namespace orrery
