#include "sim/advice/run_cost.h"

#include "models/spec/sites.h"
#include "sim/report/checkpoint.h"

namespace orrery {
namespace {

constexpr double kHoursOfYear = 365.25 * 24;

std::optional<double> sum(const std::optional<double>& nodes, const std::optional<double>& network) {
  return nodes ? std::optional(*nodes + network.value_or(0)) : std::nullopt;
}

std::optional<double> owned_usd(const RunCost& cost, double hours, const PriceList& prices) {
  if (!cost.purchase_usd || !cost.energy_MWh || prices.usd_per_kWh <= 0 || prices.write_off_years <= 0)
    return std::nullopt;
  const double written_off = *cost.purchase_usd * hours / (prices.write_off_years * kHoursOfYear);
  return written_off + 1000 * *cost.energy_MWh * prices.usd_per_kWh;
}

}  // namespace

std::optional<double> nodes_usd(const Spec& spec, const PriceList& prices) {
  const Price* price = prices.find(spec.cluster.gpu.id);
  if (price == nullptr || !price->purchase || price->purchase_gpus != spec.cluster.gpus_per_node) return std::nullopt;
  return *price->purchase * static_cast<double>(ceil_div(spec.gpus, spec.cluster.gpus_per_node));
}

RunCost bought(const Spec& spec, const PriceList& prices) {
  const Cluster& c = spec.cluster;
  const std::int64_t nodes = ceil_div(spec.gpus, c.gpus_per_node);
  RunCost cost{.network = network_parts(c, nodes, prices.network)};
  cost.network_usd = usd_of(cost.network, prices.network);
  cost.network_kW = kW_of(cost.network, prices.network);
  cost.has_sites = c.network && has_sites(*c.network);
  cost.purchase_usd = sum(nodes_usd(spec, prices), cost.network_usd);
  if (c.power_kW > 0) cost.power_kW = sum(c.power_kW * static_cast<double>(nodes), cost.network_kW);
  return cost;
}

RunCost run_cost(const Spec& spec, double tokens, double tokens_per_s, Seconds step, const PriceList& prices) {
  const Cluster& c = spec.cluster;
  const std::int64_t nodes = ceil_div(spec.gpus, c.gpus_per_node);
  const Price* price = prices.find(c.gpu.id);
  RunCost cost = bought(spec, prices);
  cost.failures = failure_plan(c, nodes, checkpoint_bytes(spec), step);
  if (spec.strategy.checkpoint) {
    const auto bytes = static_cast<Bytes>(checkpoint_bytes(spec));
    cost.failures.checkpoint = checkpoint_cost(spec, bytes, bytes / spec.gpus, step).stall;
    cost.failures.interval = static_cast<double>(spec.strategy.checkpoint->every) * step;
  }
  cost.goodput = goodput(cost.failures);
  const double an_hour = price != nullptr ? price->cloud.value_or(0) * static_cast<double>(spec.gpus) : 0;
  if (an_hour > 0) cost.usd_per_Mtoken = an_hour / 3600 / (tokens_per_s * cost.goodput) * 1e6;
  if (tokens <= 0) return cost;
  const double hours = tokens / tokens_per_s / cost.goodput / 3600;
  cost.days = hours / 24;
  if (an_hour > 0) cost.cloud_usd = an_hour * hours;
  if (cost.power_kW) cost.energy_MWh = *cost.power_kW * hours / 1000;
  cost.owned_usd = owned_usd(cost, hours, prices);
  return cost;
}

}  // namespace orrery
