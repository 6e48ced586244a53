#include "models/spec/gradients.h"

namespace orrery {

bool no_sync(const Spec& spec, const ShardingRow& row) {
  const bool habit =
      !row.shards_parameters && (!row.shards_gradients || spec.software.communication.keep_gradients_whole);
  return spec.strategy.no_sync.value_or(habit);
}

bool unit_gradients(const Spec& spec, const ShardingRow& row) {
  const bool sharded = row.shards_gradients && (row.shards_parameters || !no_sync(spec, row));
  return sharded || spec.strategy.offload.gradients != MemoryTier::device;
}

bool fresh_gradients(const Spec& spec, const ShardingRow& row) {
  return unit_gradients(spec, row) && !(row.shards_parameters && no_sync(spec, row));
}

bool reduces_each_time(const Spec& spec, const ShardingRow& row) {
  return !unit_gradients(spec, row) && !no_sync(spec, row);
}

bool adds_in_products(const Spec& spec) {
  return spec.software.kernels.gradient_accumulation_fusion && !spec.strategy.keep_16bit_gradients;
}

bool adds_in_lookups(const Spec& spec) {
  return !spec.software.kernels.dense_embedding_gradient && !spec.strategy.keep_16bit_gradients;
}

Averaging averaging(const Spec& spec, const ShardingRow& row) {
  const Strategy& s = spec.strategy;
  const Software::Communication& w = spec.software.communication;
  const std::int64_t group = row.hybrid ? s.shard_group : s.data * s.context * s.tensor_depth;
  if (group == 1 || row.master || row.servers || !s.stage_replicas.empty()) return Averaging::none;
  const bool units = unit_gradients(spec, row);
  const bool mean = reduces_each_time(spec, row) && w.gradient_average == Averaging::none;
  if (!units) return mean ? Averaging::scale : w.gradient_average;
  const bool scales =
      w.unit_average == UnitAveraging::scale ||
      (w.unit_average == UnitAveraging::scale_or_premultiply && s.gradient_precision != Precision::fp32);
  return scales ? Averaging::scale : Averaging::none;
}

}  // namespace orrery
