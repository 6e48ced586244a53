// The rules of tensors that may leave the device (contract, "Spec").
#include <algorithm>

#include "models/load/reader.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Whether a sharding has a feature. A sharding without a row is not built yet: the planner refuses it.
bool has(Sharding s, bool ShardingRow::*what) {
  const auto& rows = sharding_rows();
  return std::any_of(rows.begin(), rows.end(), [&](const ShardingRow& r) { return r.kind == s && r.*what; });
}

}  // namespace

Broken offload_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Offload& o = s.offload;
  const auto word = [](Device d) { return d == Device::cpu ? "cpu" : "nvme"; };
  const bool state_on_disk = o.optimizer == Device::nvme || o.parameters == Device::nvme || o.gradients == Device::nvme;
  const bool disk = state_on_disk || o.activations == Device::nvme;
  if (o.gradients != Device::none && o.optimizer == Device::none)
    return broken("offload.gradients", "offload.gradients: {} needs offload.optimizer: cpu or nvme, which reads them",
                  word(o.gradients));
  if (o.parameters != Device::none &&
      (o.optimizer == Device::none || !has(s.sharding, &ShardingRow::shards_parameters)))
    return broken("offload.parameters",
                  "offload.parameters: {} needs sharding: zero3 or fsdp, which gather them before use, and "
                  "offload.optimizer, which updates them",
                  word(o.parameters));
  if (state_on_disk && has(s.sharding, &ShardingRow::fp32_shards))
    return broken("offload",
                  "offload: nvme with sharding: {}, which leaves the device for the host alone; choose zero3",
                  name_of(s.sharding));
  if (o.optimizer != Device::none && s.sharding == Sharding::none && s.data * s.context > 1)
    return broken("offload.optimizer",
                  "offload.optimizer: {} with sharding: none, every one of {} ranks would update everything; choose "
                  "sharding: zero2",
                  word(o.optimizer), s.data * s.context);
  if (o.delayed_update && (o.optimizer != Device::cpu || o.parameters != Device::none || o.gradients == Device::nvme))
    return broken("offload.optimizer",
                  "offload.optimizer.delayed_update: needs optimizer: cpu and nothing on disks, "
                  "and parameters on the device");
  if (s.partition_activations && (!s.recompute.layer || s.tensor == 1 || s.sequence_parallel))
    return broken(
        "partition_activations",
        "partition_activations: cuts the inputs that recompute: full keeps over a tensor group that all holds "
        "them; recompute: full, tensor above 1 and sequence_parallel: false are needed");
  if (s.contiguous_activations && (!s.recompute.layer || o.activations != Device::none))
    return broken("contiguous_activations",
                  "contiguous_activations: places the inputs that recompute: full keeps on the device; recompute: full "
                  "and offload.activations: none are needed");
  if (o.tile < 1) return broken("offload.optimizer", "offload.optimizer.tile: {} is not at least 1", o.tile);
  if (spec.cluster.gpu.memory_bytes == 0) return {};  // no known GPU: the machine at hand, as measured
  if (o.any() && spec.cluster.gpu.pcie_GBps <= 0)
    return broken(o.optimizer == Device::none ? "offload.activations" : "offload.optimizer",
                  "offload: {} has no known link to its host (pcie_GBps is 0 in its file of models/data/gpus); state "
                  "one there, or leave offload out",
                  spec.cluster.gpu.id);
  if (o.optimizer != Device::none && !spec.cluster.host)
    return broken("offload",
                  "offload.optimizer: needs cluster.host: {{dram_GiB: ..., dram_GBps: ...}}, which {} does not state",
                  spec.cluster.node_id.empty() ? "the cluster" : spec.cluster.node_id);
  if (disk && !spec.cluster.nvme)
    return broken("offload",
                  "offload: nvme needs cluster.nvme: {{TB: ..., read_GBps: ..., write_GBps: ...}}, which {} does not "
                  "state",
                  spec.cluster.node_id.empty() ? "the cluster" : spec.cluster.node_id);
  return {};
}

}  // namespace orrery
