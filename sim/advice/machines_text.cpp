#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/advice/machines.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

std::string money(const std::optional<double>& usd) {
  if (!usd) return "-";
  return *usd >= 1e6   ? fmt::format("{:.2f} M", *usd / 1e6)
         : *usd >= 1e4 ? fmt::format("{:.1f} K", *usd / 1e3)
                       : fmt::format("{:.2f}", *usd);
}

// A figure with three significant digits, whatever its size, because prices and durations differ a thousandfold among
// machines.
std::string three_digits(double value) {
  const int whole = static_cast<int>(std::floor(std::log10(value)));
  return fmt::format("{:.{}f}", value, std::clamp(2 - whole, 0, 6));
}

// The value as text with `digits` decimals, or "-" where it is not known.
std::string figure(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

// A line on a machine's switches and links, and on what of them is not in its price and power; "" without a network.
std::string network_line(const Machine& m, const SwitchPrice& price) {
  const NetworkParts& parts = m.cost.network;
  if (parts.links == 0 && !m.cost.has_sites) return "";
  std::string line = fmt::format("network of {} x {}: ", m.gpus, m.name);
  if (parts.links > 0) {
    const bool known = price.switch_kW || parts.switches == 0;
    line += fmt::format(
        "{} switches{} and {} links of {:g} Gb/s, {} $, {} kW{}", grouped(static_cast<double>(parts.switches)),
        parts.levels > 0 ? fmt::format(" in {} level{}", parts.levels, parts.levels == 1 ? "" : "s") : "",
        grouped(parts.links), price.port_Gbps, money(m.cost.network_usd), figure(m.cost.network_kW, 1),
        known ? "" : " of links alone (switches' power unknown)");
  }
  if (m.cost.has_sites)
    line += parts.links > 0 ? "; links between sites are not priced" : "links between sites are not priced";
  return line;
}

// The notes below the table of machines: figures that the table leaves out, and the prices on which it is based.
std::vector<std::string> price_notes(const std::vector<Machine>& machines, const PriceList& prices) {
  std::vector<std::string> lines;
  std::vector<std::string_view> told;
  for (const Machine& m : machines) {
    if (m.price && std::find(told.begin(), told.end(), m.price->gpu) == told.end()) {
      told.push_back(m.price->gpu);
      lines.push_back(price_line(*m.price));
    }
    if (!m.excluded.empty()) lines.push_back(fmt::format("{} x {}: {}", m.gpus, m.name, m.excluded));
    if (const std::string line = network_line(m, prices.network); !line.empty()) lines.push_back(line);
  }
  const auto lacks = [&](auto member) {
    return std::any_of(machines.begin(), machines.end(), [&](const Machine& m) {
      return !m.strategy.empty() && m.cost.failures.between_failures > 0 && !(m.cost.failures.*member);
    });
  };
  if (lacks(&FailurePlan::restart)) lines.push_back("<=: a restart's time is not known (cluster.failures.restart_s)");
  if (lacks(&FailurePlan::checkpoint)) lines.push_back("<=: a checkpoint's time is not known (cluster.nvme)");
  lines.push_back(
      fmt::format("prices of {}, rented by the GPU hour; they vary several times between providers", prices.date));
  const bool networks =
      std::any_of(machines.begin(), machines.end(), [](const Machine& m) { return m.cost.network_usd.has_value(); });
  if (networks) lines.emplace_back("purchase, power and energy: of nodes, and of switches and links as far as known");
  if (networks && !prices.network.source.empty())
    lines.push_back(fmt::format("price of switches and links: uncertain; {}", prices.network.source));
  if (prices.usd_per_kWh > 0 && prices.write_off_years > 0)
    lines.push_back(fmt::format(
        "owned: the nodes' price written off over {:.3g} years (--write-off) while the run lasts, and their "
        "electricity"
        " at {:.3g} $/kWh (--energy-price), {} not in it",
        prices.write_off_years, prices.usd_per_kWh,
        networks ? "with switches and links; cooling and buildings are" : "cooling, buildings and switches are"));
  return lines;
}

std::string reached_text(const Machine& m) {
  if (m.reached == Reached::not_searched) return "not reached";
  if (m.reached == Reached::not_proven && m.strategy.empty()) return "-";
  if (m.gap == 0) return "proven";
  return fmt::format("{} {:.1f} %", m.reached == Reached::proven ? "proven within" : "within", 100 * m.gap);
}

std::vector<std::string> name_of(const Machine& m) { return {m.name, grouped(static_cast<double>(m.gpus))}; }

std::vector<std::string> and_after(std::vector<std::string> row, const std::vector<std::string>& more) {
  row.insert(row.end(), more.begin(), more.end());
  return row;
}

Table steps_table(const std::vector<Machine>& machines) {
  double slowest = 0;
  for (const Machine& m : machines) slowest = std::max(slowest, m.step_s);
  const Scale time = time_scale(slowest), bytes = memory_scale(1 << 30);
  const auto in_unit = [&](double s) { return three_digits(s / time.size); };
  Table t{{{"machine", "", Align::left},
           {"GPUs", ""},
           {"step", std::string(time.unit)},
           {"8 of 10", std::string(time.unit)},
           {"tokens/s", "K"},
           {"MFU", "%"},
           {"memory", std::string(bytes.unit)},
           {"proof", "", Align::left},
           {"strategy", "", Align::left}},
          {}};
  for (const Machine& m : machines) {
    if (m.strategy.empty()) {
      t.rows.push_back(and_after(name_of(m), {"-", "-", "-", "-", "-", reached_text(m), "none"}));
      continue;
    }
    const bool known = m.step_low_s < m.step_high_s;
    t.rows.push_back(
        and_after(name_of(m), {in_unit(m.step_s), known ? in_unit(m.step_low_s) + " - " + in_unit(m.step_high_s) : "-",
                               fmt::format("{:.1f}", m.tokens_per_s / 1000), fmt::format("{:.1f}", 100 * m.mfu),
                               number(static_cast<double>(m.memory), bytes), reached_text(m), m.strategy}));
  }
  return t;
}

Table runs_table(const std::vector<Machine>& machines) {
  Table t{{{"machine", "", Align::left},
           {"GPUs", ""},
           {"fails", "every h"},
           {"saves", "every min"},
           {"goodput", "%"},
           {"run", "days"},
           {"rent", "$"},
           {"rent", "$/Mtoken"},
           {"purchase", "$"},
           {"owned", "$"},
           {"power", "kW"},
           {"energy", "MWh"}},
          {}};
  for (const Machine& m : machines) {
    const std::string power = figure(m.cost.power_kW, 0);
    if (m.strategy.empty()) {
      t.rows.push_back(
          and_after(name_of(m), {"-", "-", "-", "-", "-", "-", money(m.cost.purchase_usd), "-", power, "-"}));
      continue;
    }
    const FailurePlan& f = m.cost.failures;
    const std::string most = f.is_complete() ? "" : "<=";
    t.rows.push_back(
        and_after(name_of(m), {f.between_failures > 0 ? fmt::format("{:.1f}", f.between_failures / 3600) : "-",
                               saves_every(m) > 0 ? three_digits(saves_every(m) / 60) : "-",
                               fmt::format("{}{:.1f}", most, 100 * m.cost.goodput), figure(m.cost.days, 1),
                               money(m.cost.cloud_usd), money(m.cost.usd_per_Mtoken), money(m.cost.purchase_usd),
                               money(m.cost.owned_usd), power, figure(m.cost.energy_MWh, 0)}));
  }
  return t;
}

}  // namespace

std::string price_line(const Price& p) {
  std::string text = fmt::format("price of {}: ", p.gpu);
  text += p.cloud ? fmt::format("{:.2f} $ a GPU and hour", *p.cloud) : "no rent known";
  if (p.cloud_low && p.cloud_high) text += fmt::format(" ({:.2f} to {:.2f})", *p.cloud_low, *p.cloud_high);
  if (p.purchase) text += fmt::format(", {} $ a node of {}", money(p.purchase), p.purchase_gpus);
  if (p.uncertain) text += ", uncertain";
  return text + (p.source.empty() ? "" : "; " + p.source);
}

std::vector<Section> machines_sections(const std::vector<Machine>& machines, const PriceList& prices) {
  return {{"machines", {}, steps_table(machines), {}},
          {"the run on them", {}, runs_table(machines), price_notes(machines, prices)}};
}

std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, const Style& style) {
  const std::vector<Section> sections = machines_sections(machines, prices);
  return text_of(sections[0], style) + '\n' + text_of(sections[1], style);
}

}  // namespace orrery
