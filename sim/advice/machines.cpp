#include "sim/advice/machines.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json json_of(const Price& p) {
  return {{"cloud_usd", or_null(p.cloud)},
          {"cloud_low_usd", or_null(p.cloud_low)},
          {"cloud_high_usd", or_null(p.cloud_high)},
          {"purchase_usd", or_null(p.purchase)},
          {"purchase_gpus", p.purchase_gpus},
          {"uncertain", p.uncertain},
          {"source", p.source}};
}

std::string_view word_of(Reached reached) {
  constexpr std::string_view kWords[] = {"proven", "not proven", "not reached"};
  return kWords[static_cast<std::size_t>(reached)];
}

}  // namespace

std::string machine_name(const Cluster& c) { return c.node_id.empty() ? c.gpu.id : c.node_id; }

Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens) {
  const Spec& spec = space.base();
  const Cluster& c = spec.cluster;
  Machine m{.name = machine_name(c), .gpus = space.gpus()};
  m.reached = result.proven ? Reached::proven : Reached::not_proven;
  m.nodes = ceil_div(m.gpus, c.gpus_per_node);
  if (const Price* price = prices.find(c.gpu.id)) m.price = *price;
  Spec used = spec;  // the spec with only the GPUs in use, which may be fewer than the cluster has
  used.gpus = m.gpus;
  if (result.best.empty()) {
    m.cost = bought(used, prices);
    m.excluded = !result.reason.empty() ? result.reason : result.proven ? "nothing fits" : "interrupted";
    return m;
  }
  const Report& best = result.best.front().report;
  m.strategy = space.text_of(result.best.front().point);
  m.gap = result.gap;
  m.step_s = best.step_time_s;
  m.step_low_s = best.step_time_low_s;
  m.step_high_s = best.step_time_high_s;
  m.tokens_per_s = best.tokens_per_s;
  m.mfu = best.mfu;
  m.memory = best.memory.peak_device;
  m.cost = run_cost(used, tokens, m.tokens_per_s, m.step_s, prices);
  return m;
}

double saves_every(const Machine& m) {
  return m.cost.failures.interval > 0 ? m.cost.failures.interval : best_interval(m.cost.failures);
}

std::string machines_json(const std::vector<Machine>& machines) {
  ordered_json list = ordered_json::array();
  for (const Machine& m : machines) {
    list.push_back({{"machine", m.name},
                    {"gpus", m.gpus},
                    {"nodes", m.nodes},
                    {"strategy", m.strategy},
                    {"reached", word_of(m.reached)},
                    {"gap", m.gap},
                    {"excluded", m.excluded},
                    {"step_time_s", m.step_s},
                    {"step_time_low_s", m.step_low_s},
                    {"step_time_high_s", m.step_high_s},
                    {"tokens_per_s", m.tokens_per_s},
                    {"mfu", m.mfu},
                    {"between_failures_s", m.cost.failures.between_failures},
                    {"checkpoint_s", or_null(m.cost.failures.checkpoint)},
                    {"restart_s", or_null(m.cost.failures.restart)},
                    {"checkpoint_interval_s", saves_every(m)},
                    {"goodput", m.cost.goodput},
                    {"goodput_is_at_most", !m.cost.failures.is_complete()},
                    {"days", or_null(m.cost.days)},
                    {"cloud_usd", or_null(m.cost.cloud_usd)},
                    {"usd_per_Mtoken", or_null(m.cost.usd_per_Mtoken)},
                    {"purchase_usd", or_null(m.cost.purchase_usd)},
                    {"owned_usd", or_null(m.cost.owned_usd)},
                    {"network_switches", m.cost.network.switches},
                    {"network_links", m.cost.network.links},
                    {"network_levels", m.cost.network.levels},
                    {"network_usd", or_null(m.cost.network_usd)},
                    {"network_kW", or_null(m.cost.network_kW)},
                    {"power_kW", or_null(m.cost.power_kW)},
                    {"energy_MWh", or_null(m.cost.energy_MWh)},
                    {"price", m.price ? json_of(*m.price) : ordered_json(nullptr)}});
  }
  return list.dump(2) + '\n';
}

std::string machines_csv(const std::vector<Machine>& machines) {
  std::string text =
      "machine,gpus,strategy,step_time_s,tokens_per_s,mfu,between_failures_s,goodput,days,cloud_usd,usd_per_Mtoken,"
      "purchase_usd,power_kW,energy_MWh,step_time_low_s,step_time_high_s,owned_usd,reached,excluded,network_usd,"
      "network_kW\n";
  const auto cell = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string(); };
  const auto quoted = [](std::string words) {
    std::replace(words.begin(), words.end(), '"', '\'');
    return '"' + words + '"';
  };
  for (const Machine& m : machines) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", m.name, m.gpus,
                        quoted(m.strategy), m.step_s, m.tokens_per_s, m.mfu, m.cost.failures.between_failures,
                        m.cost.goodput, cell(m.cost.days), cell(m.cost.cloud_usd), cell(m.cost.usd_per_Mtoken),
                        cell(m.cost.purchase_usd), cell(m.cost.power_kW), cell(m.cost.energy_MWh), m.step_low_s,
                        m.step_high_s, cell(m.cost.owned_usd), word_of(m.reached), quoted(m.excluded),
                        cell(m.cost.network_usd), cell(m.cost.network_kW));
  }
  return text;
}

}  // namespace orrery
