#include "sim/search_machines.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/data.h"
#include "models/error.h"
#include "models/spec_reader.h"
#include "sim/flops.h"
#include "sim/table.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostPriceBytes = 1 << 20;
constexpr double kDay = 86400;

std::optional<double> dollars(const nlohmann::json& row, const char* key) {
  if (!row.contains(key) || row.at(key).is_null()) return std::nullopt;
  return row.at(key).get<double>();
}

std::string money(const std::optional<double>& usd) {
  if (!usd) return "-";
  return *usd >= 1e6   ? fmt::format("{:.2f} M", *usd / 1e6)
         : *usd >= 1e4 ? fmt::format("{:.1f} K", *usd / 1e3)
                       : fmt::format("{:.2f}", *usd);
}

// Weights in 16 bits, and what the optimizer keeps of each.
double checkpoint_bytes(const Spec& spec) {
  const Optimizer& o = spec.strategy.optimizer;
  const double moments = o.kind == OptimizerKind::sgd ? 0 : 2 * static_cast<double>(o.moment_bytes);
  return static_cast<double>(parameter_count(spec.model)) * (2 + static_cast<double>(o.master_bytes) + moments);
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

const Price* PriceList::find(std::string_view gpu) const {
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const Price& p) { return p.gpu == gpu; });
  return it == rows.end() ? nullptr : &*it;
}

PriceList load_prices(const std::string& path) {
  const std::string name = path.empty() ? "prices.json" : path;
  const std::string text = path.empty() ? std::string(data_file(name)) : read_file(path, kMostPriceBytes);
  try {
    const nlohmann::json j = nlohmann::json::parse(text);
    PriceList list{j.at("date").get<std::string>(), {}};
    for (const nlohmann::json& row : j.at("rows")) {
      list.rows.push_back({row.at("gpu").get<std::string>(), dollars(row, "cloud_usd"), dollars(row, "purchase_usd"),
                           row.value("uncertain", false), row.value("source", std::string())});
    }
    return list;
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("{}: not a price list: {}; see models/data/prices.json", name, e.what()));
  }
}

Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens) {
  const Spec& spec = space.base();
  const Cluster& c = spec.cluster;
  Machine m{.name = c.node_id.empty() ? c.gpu.id : c.node_id, .gpus = space.gpus()};
  m.nodes = ceil_div(m.gpus, c.gpus_per_node);
  m.power_kW = c.power_kW * static_cast<double>(m.nodes);
  if (result.best.empty()) return m;
  const Report& best = result.best.front().report;
  m.strategy = space.text_of(result.best.front().point);
  m.step_s = best.step_time_s;
  m.tokens_per_s = best.tokens_per_s;
  m.mfu = best.mfu;
  m.failures = failure_plan(c, m.nodes, checkpoint_bytes(spec), m.step_s);
  m.goodput = goodput(m.failures);
  const double hours = tokens > 0 ? tokens / m.tokens_per_s / m.goodput / 3600 : 0;
  m.days = hours * 3600 / kDay;
  m.energy_MWh = m.power_kW * hours / 1000;
  const Price* price = prices.find(c.gpu.id);
  if (price == nullptr) return m;
  if (price->purchase) m.purchase_usd = *price->purchase * static_cast<double>(m.nodes);
  if (!price->cloud) return m;
  const double an_hour = *price->cloud * static_cast<double>(m.gpus);
  if (tokens > 0) m.cloud_usd = an_hour * hours;
  m.usd_per_Mtoken = an_hour / 3600 / (m.tokens_per_s * m.goodput) * 1e6;
  return m;
}

std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, double tokens,
                          const Style& style) {
  double slowest = 0;
  for (const Machine& m : machines) slowest = std::max(slowest, m.step_s);
  const Scale time = time_scale(slowest);
  Table t{{{"machine", "", Align::left},
           {"GPUs", ""},
           {"step", std::string(time.unit)},
           {"tokens/s", "K"},
           {"MFU", "%"},
           {"fails", "every h"},
           {"goodput", "%"},
           {"run", "days"},
           {"rent", "$"},
           {"rent", "$/Mtoken"},
           {"purchase", "$"},
           {"power", "kW"},
           {"energy", "MWh"},
           {"strategy", "", Align::left}},
          {}};
  for (const Machine& m : machines) {
    if (m.strategy.empty()) {
      t.rows.push_back({m.name, grouped(static_cast<double>(m.gpus)), "-", "-", "-", "-", "-", "-", "-", "-", "-",
                        fmt::format("{:.0f}", m.power_kW), "-", "nothing fits"});
      continue;
    }
    t.rows.push_back({m.name, grouped(static_cast<double>(m.gpus)), number(m.step_s, time),
                      fmt::format("{:.1f}", m.tokens_per_s / 1000), fmt::format("{:.1f}", 100 * m.mfu),
                      m.failures.between_failures > 0 ? fmt::format("{:.1f}", m.failures.between_failures / 3600) : "-",
                      fmt::format("{:.1f}", 100 * m.goodput), tokens > 0 ? fmt::format("{:.1f}", m.days) : "-",
                      money(m.cloud_usd), money(m.usd_per_Mtoken), money(m.purchase_usd),
                      fmt::format("{:.0f}", m.power_kW), tokens > 0 ? fmt::format("{:.0f}", m.energy_MWh) : "-",
                      m.strategy});
  }
  std::string text = heading("machines", style) + '\n' + print(t, "  ");
  text += fmt::format("  prices of {}; rented by the GPU hour; {}\n", prices.date,
                      "uncertain: they vary several times between providers, see the price file");
  return text;
}

std::string machines_json(const std::vector<Machine>& machines) {
  ordered_json list = ordered_json::array();
  for (const Machine& m : machines) {
    list.push_back(
        {{"machine", m.name},
         {"gpus", m.gpus},
         {"nodes", m.nodes},
         {"strategy", m.strategy},
         {"step_time_s", m.step_s},
         {"tokens_per_s", m.tokens_per_s},
         {"mfu", m.mfu},
         {"between_failures_s", m.failures.between_failures},
         {"checkpoint_s", m.failures.checkpoint},
         {"restart_s", m.failures.restart},
         {"checkpoint_interval_s", m.failures.interval > 0 ? m.failures.interval : best_interval(m.failures)},
         {"goodput", m.goodput},
         {"days", m.days},
         {"cloud_usd", or_null(m.cloud_usd)},
         {"usd_per_Mtoken", or_null(m.usd_per_Mtoken)},
         {"purchase_usd", or_null(m.purchase_usd)},
         {"power_kW", m.power_kW},
         {"energy_MWh", m.energy_MWh}});
  }
  return list.dump(2) + '\n';
}

std::string machines_csv(const std::vector<Machine>& machines) {
  std::string text =
      "machine,gpus,strategy,step_time_s,tokens_per_s,mfu,between_failures_s,goodput,days,cloud_usd,usd_per_Mtoken,"
      "purchase_usd,power_kW,energy_MWh\n";
  const auto cell = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string(); };
  for (const Machine& m : machines) {
    text += fmt::format("{},{},\"{}\",{},{},{},{},{},{},{},{},{},{},{}\n", m.name, m.gpus, m.strategy, m.step_s,
                        m.tokens_per_s, m.mfu, m.failures.between_failures, m.goodput, m.days, cell(m.cloud_usd),
                        cell(m.usd_per_Mtoken), cell(m.purchase_usd), m.power_kW, m.energy_MWh);
  }
  return text;
}

}  // namespace orrery
