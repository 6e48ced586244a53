#include "models/spec/gradients.h"

namespace orrery {

bool unit_gradients(const Spec& spec, const ShardingRow& row) {
  const bool sharded = row.shards_gradients && (row.shards_parameters || !spec.software.keep_gradients_whole);
  return sharded || spec.strategy.offload.gradients != Device::none;
}

Averaging averaging(const Spec& spec, const ShardingRow& row) {
  const Strategy& s = spec.strategy;
  const Software& w = spec.software;
  const std::int64_t group = row.hybrid ? s.shard_group : s.data * s.context * s.tensor_depth;
  if (group == 1 || row.master || row.servers || !s.stage_replicas.empty()) return Averaging::none;
  const bool units = unit_gradients(spec, row);
  if (!units && w.gradient_average == "copy") return Averaging::copy;
  const bool scales = units ? w.unit_average == "scale" ||
                                  (w.unit_average == "scale_or_premultiply" && s.gradient_precision != Precision::fp32)
                            : w.gradient_average == "scale";
  return scales ? Averaging::scale : Averaging::none;
}

}  // namespace orrery
