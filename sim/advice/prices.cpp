#include "sim/advice/prices.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostGpusOfNode = 1'000'000;
constexpr double kMostYears = 100, kMostGbps = 1e6, kMostKilowatts = 1e3;
constexpr std::int64_t kMostPorts = 100'000;

const std::vector<std::string_view> kListKeys = {
    "about", "date", "rows", "usd_per_kWh", "electricity_source", "write_off_years", "write_off_source", "network"};
const std::vector<std::string_view> kNetworkKeys = {"switch_ports", "port_Gbps", "switch_usd", "switch_kW",
                                                    "link_usd",     "link_kW",   "source"};
const std::vector<std::string_view> kRowKeys = {"gpu",          "cloud_usd",     "cloud_low_usd", "cloud_high_usd",
                                                "purchase_usd", "purchase_gpus", "uncertain",     "source"};

std::optional<double> amount(const JsonValue& row, const char* key, double most) {
  const auto found = row.find(key);
  return found ? std::optional(found->positive(most)) : std::nullopt;
}

std::optional<double> dollars(const JsonValue& row, const char* key) {
  return amount(row, key, sensible::kMostDollars);
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

SwitchPrice switch_of(const JsonValue& row) {
  row.require_known(kNetworkKeys);
  SwitchPrice p{.ports = row.whole_or("switch_ports", 0, 1, kMostPorts),
                .port_Gbps = amount(row, "port_Gbps", kMostGbps).value_or(0),
                .switch_usd = dollars(row, "switch_usd"),
                .switch_kW = amount(row, "switch_kW", kMostKilowatts),
                .link_usd = dollars(row, "link_usd"),
                .link_kW = amount(row, "link_kW", kMostKilowatts),
                .source = row.text_or("source", "")};
  if (p.ports < 1 || !(p.port_Gbps >= 1))
    row.fail("switch_ports and port_Gbps of at least 1 are needed: a switch's ports");
  return p;
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
  PriceList list{.date = root.at("date").text(),
                 .rows = {},
                 .network = {},
                 .usd_per_kWh = amount(root, "usd_per_kWh", sensible::kMostDollars).value_or(0),
                 .write_off_years = amount(root, "write_off_years", kMostYears).value_or(0)};
  if (const auto network = root.find("network")) list.network = switch_of(*network);
  for (const JsonValue& entry : root.at("rows").items())
    list.rows.push_back(price_of(JsonValue(entry.raw(), fmt::format("{}: row {}", path, list.rows.size() + 1))));
  return list;
}

PriceList load_prices(const PriceOptions& options) {
  PriceList list = options.file.empty() ? parse_prices(data_file("prices.json"), "prices.json")
                                        : parse_prices(read_input(options.file, kMostSettings), options.file);
  if (options.usd_per_kWh > 0) list.usd_per_kWh = options.usd_per_kWh;
  if (options.write_off_years > 0) list.write_off_years = options.write_off_years;
  return list;
}

}  // namespace orrery
