#include "sim/advice/run_cost.h"

namespace orrery {

RunCost run_cost(const Spec& spec, double tokens, double tokens_per_s, Seconds step,
                 const std::optional<double>& usd_per_hour) {
  const std::int64_t nodes = ceil_div(spec.gpus, spec.cluster.gpus_per_node);
  RunCost cost{.failures = failure_plan(spec.cluster, nodes, checkpoint_bytes(spec), step)};
  cost.goodput = goodput(cost.failures);
  const double hours = tokens / tokens_per_s / cost.goodput / 3600;
  if (tokens > 0) cost.days = hours / 24;
  if (tokens > 0 && spec.cluster.power_kW > 0)
    cost.energy_MWh = spec.cluster.power_kW * static_cast<double>(nodes) * hours / 1000;
  if (!usd_per_hour) return cost;
  const double an_hour = *usd_per_hour * static_cast<double>(spec.gpus);
  if (tokens > 0) cost.cloud_usd = an_hour * hours;
  cost.usd_per_Mtoken = an_hour / 3600 / (tokens_per_s * cost.goodput) * 1e6;
  return cost;
}

}  // namespace orrery
