#include "sim/advice/machines.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/sensible.h"
#include "sim/advice/run_cost.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostGpusOfNode = 1'000'000;

const std::vector<std::string_view> kListKeys = {"about", "date", "rows"};
const std::vector<std::string_view> kRowKeys = {"gpu",          "cloud_usd",     "cloud_low_usd", "cloud_high_usd",
                                                "purchase_usd", "purchase_gpus", "uncertain",     "source"};

std::optional<double> dollars(const JsonValue& row, const char* key) {
  const auto found = row.find(key);
  return found ? std::optional(found->positive(sensible::kMostDollars)) : std::nullopt;
}

Price price_of(const JsonValue& row) {
  row.require_known(kRowKeys);
  Price p{.gpu = row.at("gpu").text(),
          .cloud = dollars(row, "cloud_usd"),
          .cloud_low = dollars(row, "cloud_low_usd"),
          .cloud_high = dollars(row, "cloud_high_usd"),
          .purchase = dollars(row, "purchase_usd"),
          .purchase_gpus = row.whole_or("purchase_gpus", 0, 0, kMostGpusOfNode),
          .uncertain = row.flag_or("uncertain", false),
          .source = row.text_or("source", "")};
  if (p.purchase && p.purchase_gpus < 1) row.fail("purchase_usd: needs purchase_gpus, the GPUs of that node");
  return p;
}

std::string money(const std::optional<double>& usd) {
  if (!usd) return "-";
  return *usd >= 1e6   ? fmt::format("{:.2f} M", *usd / 1e6)
         : *usd >= 1e4 ? fmt::format("{:.1f} K", *usd / 1e3)
                       : fmt::format("{:.2f}", *usd);
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

const Price* PriceList::find(std::string_view gpu) const {
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const Price& p) { return p.gpu == gpu; });
  return it == rows.end() ? nullptr : &*it;
}

PriceList parse_prices(std::string_view text, const std::string& path) {
  constexpr const char* kAdvice = "a price list is as models/data/prices.json";
  const nlohmann::json file = parse_json(path, text, kAdvice);
  const JsonValue root(file, path, kAdvice);
  root.require_known(kListKeys);
  PriceList list{root.at("date").text(), {}};
  for (const JsonValue& entry : root.at("rows").items())
    list.rows.push_back(price_of(JsonValue(entry.raw(), fmt::format("{}: row {}", path, list.rows.size() + 1))));
  return list;
}

PriceList load_prices(const std::string& path) {
  return path.empty() ? parse_prices(data_file("prices.json"), "prices.json")
                      : parse_prices(read_input(path, kMostSettings), path);
}

Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens) {
  const Spec& spec = space.base();
  const Cluster& c = spec.cluster;
  Machine m{.name = c.node_id.empty() ? c.gpu.id : c.node_id, .gpus = space.gpus()};
  m.nodes = ceil_div(m.gpus, c.gpus_per_node);
  if (c.power_kW > 0) m.power_kW = c.power_kW * static_cast<double>(m.nodes);
  if (const Price* price = prices.find(c.gpu.id)) m.price = *price;
  if (m.price && m.price->purchase && m.price->purchase_gpus == c.gpus_per_node)
    m.purchase_usd = *m.price->purchase * static_cast<double>(m.nodes);
  if (result.best.empty()) {
    m.excluded = !result.reason.empty() ? result.reason : result.proven ? "nothing fits" : "interrupted";
    return m;
  }
  const Report& best = result.best.front().report;
  m.strategy = space.text_of(result.best.front().point);
  m.step_s = best.step_time_s;
  m.tokens_per_s = best.tokens_per_s;
  m.mfu = best.mfu;
  m.memory = best.memory.peak_device;
  Spec used = spec;  // the machine in use may be a part of the cluster
  used.gpus = m.gpus;
  const RunCost cost = run_cost(used, tokens, m.tokens_per_s, m.step_s, m.price ? m.price->cloud : std::nullopt);
  m.failures = cost.failures;
  m.goodput = cost.goodput;
  m.days = cost.days;
  m.cloud_usd = cost.cloud_usd;
  m.usd_per_Mtoken = cost.usd_per_Mtoken;
  m.energy_MWh = cost.energy_MWh;
  return m;
}

namespace {

// Seconds of training between two checkpoints: as given by the user, or those with which the least time is lost.
double saves_every(const Machine& m) {
  return m.failures.interval > 0 ? m.failures.interval : best_interval(m.failures);
}

// Prints with three digits a figure that may differ a thousandfold from machine to machine.
std::string three_digits(double value) {
  const int whole = static_cast<int>(std::floor(std::log10(value)));
  return fmt::format("{:.{}f}", value, std::clamp(2 - whole, 0, 6));
}

// A figure, or "-" where it is not known.
std::string figure(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string price_text(const Price& p) {
  std::string text = fmt::format("  price of {}: ", p.gpu);
  text += p.cloud ? fmt::format("{:.2f} $ a GPU and hour", *p.cloud) : "no rent known";
  if (p.cloud_low && p.cloud_high) text += fmt::format(" ({:.2f} to {:.2f})", *p.cloud_low, *p.cloud_high);
  if (p.purchase) text += fmt::format(", {} $ a node of {}", money(p.purchase), p.purchase_gpus);
  if (p.uncertain) text += ", uncertain";
  return text + (p.source.empty() ? "" : "; " + p.source) + '\n';
}

// Notes below the table: figures that the table leaves out, and the prices on which it is based.
std::string notes_text(const std::vector<Machine>& machines, const PriceList& prices) {
  std::string text;
  std::vector<std::string_view> told;
  for (const Machine& m : machines) {
    if (!m.beyond_limits && m.price && std::find(told.begin(), told.end(), m.price->gpu) == told.end()) {
      told.push_back(m.price->gpu);
      text += price_text(*m.price);
    }
    if (!m.excluded.empty()) text += fmt::format("  {} x {}: {}\n", m.gpus, m.name, m.excluded);
  }
  const auto lacks = [&](auto member) {
    return std::any_of(machines.begin(), machines.end(), [&](const Machine& m) {
      return !m.strategy.empty() && m.failures.between_failures > 0 && !(m.failures.*member);
    });
  };
  if (lacks(&FailurePlan::restart)) text += "  <=: a restart's time is not known (cluster.failures.restart_s)\n";
  if (lacks(&FailurePlan::checkpoint)) text += "  <=: a checkpoint's time is not known (cluster.nvme)\n";
  return text + fmt::format("  prices of {}, rented by the GPU hour; they vary several times between providers\n",
                            prices.date);
}

}  // namespace

std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, const Style& style) {
  double slowest = 0;
  for (const Machine& m : machines) slowest = m.beyond_limits ? slowest : std::max(slowest, m.step_s);
  const Scale time = time_scale(slowest);
  Table t{{{"machine", "", Align::left},
           {"GPUs", ""},
           {"step", std::string(time.unit)},
           {"tokens/s", "K"},
           {"MFU", "%"},
           {"fails", "every h"},
           {"saves", "every min"},
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
    if (m.beyond_limits) continue;
    const std::string power = figure(m.power_kW, 0), gpus = grouped(static_cast<double>(m.gpus));
    if (m.strategy.empty()) {
      t.rows.push_back(
          {m.name, gpus, "-", "-", "-", "-", "-", "-", "-", "-", "-", money(m.purchase_usd), power, "-", "none"});
      continue;
    }
    const std::string most = m.failures.is_complete() ? "" : "<=";
    t.rows.push_back({m.name, gpus, three_digits(m.step_s / time.size), fmt::format("{:.1f}", m.tokens_per_s / 1000),
                      fmt::format("{:.1f}", 100 * m.mfu),
                      m.failures.between_failures > 0 ? fmt::format("{:.1f}", m.failures.between_failures / 3600) : "-",
                      saves_every(m) > 0 ? three_digits(saves_every(m) / 60) : "-",
                      fmt::format("{}{:.1f}", most, 100 * m.goodput), figure(m.days, 1), money(m.cloud_usd),
                      money(m.usd_per_Mtoken), money(m.purchase_usd), power, figure(m.energy_MWh, 0), m.strategy});
  }
  return heading("machines", style) + '\n' + (t.rows.empty() ? "" : print(t, "  ")) + notes_text(machines, prices);
}

static ordered_json json_of(const Price& p) {
  return {{"cloud_usd", or_null(p.cloud)},
          {"cloud_low_usd", or_null(p.cloud_low)},
          {"cloud_high_usd", or_null(p.cloud_high)},
          {"purchase_usd", or_null(p.purchase)},
          {"purchase_gpus", p.purchase_gpus},
          {"uncertain", p.uncertain},
          {"source", p.source}};
}

std::string machines_json(const std::vector<Machine>& machines) {
  ordered_json list = ordered_json::array();
  for (const Machine& m : machines) {
    list.push_back({{"machine", m.name},
                    {"gpus", m.gpus},
                    {"nodes", m.nodes},
                    {"strategy", m.strategy},
                    {"excluded", m.excluded},
                    {"step_time_s", m.step_s},
                    {"tokens_per_s", m.tokens_per_s},
                    {"mfu", m.mfu},
                    {"between_failures_s", m.failures.between_failures},
                    {"checkpoint_s", or_null(m.failures.checkpoint)},
                    {"restart_s", or_null(m.failures.restart)},
                    {"checkpoint_interval_s", saves_every(m)},
                    {"goodput", m.goodput},
                    {"goodput_is_at_most", !m.failures.is_complete()},
                    {"days", or_null(m.days)},
                    {"cloud_usd", or_null(m.cloud_usd)},
                    {"usd_per_Mtoken", or_null(m.usd_per_Mtoken)},
                    {"purchase_usd", or_null(m.purchase_usd)},
                    {"power_kW", or_null(m.power_kW)},
                    {"energy_MWh", or_null(m.energy_MWh)},
                    {"price", m.price ? json_of(*m.price) : ordered_json(nullptr)}});
  }
  return list.dump(2) + '\n';
}

std::string machines_csv(const std::vector<Machine>& machines) {
  std::string text =
      "machine,gpus,strategy,step_time_s,tokens_per_s,mfu,between_failures_s,goodput,days,cloud_usd,usd_per_Mtoken,"
      "purchase_usd,power_kW,energy_MWh\n";
  const auto cell = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string(); };
  for (const Machine& m : machines) {
    if (m.beyond_limits) continue;
    text += fmt::format("{},{},\"{}\",{},{},{},{},{},{},{},{},{},{},{}\n", m.name, m.gpus, m.strategy, m.step_s,
                        m.tokens_per_s, m.mfu, m.failures.between_failures, m.goodput, cell(m.days), cell(m.cloud_usd),
                        cell(m.usd_per_Mtoken), cell(m.purchase_usd), cell(m.power_kW), cell(m.energy_MWh));
  }
  return text;
}

}  // namespace orrery
