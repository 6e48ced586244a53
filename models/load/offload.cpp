// The rules of tensors that may leave the device: the machine has room and a way for them.
#include "models/load/features.h"
#include "models/load/reader.h"

namespace orrery {
Broken offload_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Offload& o = s.offload;
  const bool disk = feature::is::state_on_disk(spec) || o.activations == Device::nvme;
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
