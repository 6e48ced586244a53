#include "sim/predict/checkpoint_flows.h"

#include "sim/report/checkpoint.h"

namespace orrery {

std::optional<Spec> while_a_checkpoint_leaves(const Spec& spec) {
  const double taken = storage_Gbps(spec);
  if (!(taken > 0)) return std::nullopt;
  Spec beside = spec;
  if (!beside.cluster.network) beside.cluster.network.emplace();
  beside.cluster.network->storage_Gbps = taken;
  beside.strategy.checkpoint.reset();
  beside.cluster.variation.reset();
  return beside;
}

}  // namespace orrery
