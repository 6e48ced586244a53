#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The prices of one GPU model in US dollars, from a price file (models/data/prices.json). nullopt: not known.
struct Price {
  std::string gpu;
  // Rent of one GPU for an hour, and the lowest and highest such rent among providers.
  std::optional<double> cloud, cloud_low, cloud_high;
  std::optional<double> purchase;  // purchase price of a node (machine with GPUs)
  std::int64_t purchase_gpus = 0;  // number of GPUs in the node with this purchase price
  bool uncertain = false;
  std::string source;
};
// The prices and powers of one kind of switch and of a link at the rate of its ports, with the transceivers at both of
// its ends. nullopt: not known; ports 0: the list has no switch.
struct SwitchPrice {
  std::int64_t ports = 0;
  double port_Gbps = 0;
  std::optional<double> switch_usd, switch_kW, link_usd, link_kW;
  std::string source;
};
// Prices of GPUs and of electricity, and the years over which owners write nodes off. A number of 0 means that it is
// not known.
struct PriceList {
  std::string date;
  std::vector<Price> rows;
  SwitchPrice network;
  double usd_per_kWh = 0;      // price of a kWh in US dollars
  double write_off_years = 0;  // years over which the price of a node is written off, in equal parts

  const Price* find(std::string_view gpu) const;
};
// file: the path of a price list ("": the built-in one). usd_per_kWh, write_off_years: values from the command line
// that replace those of the list (0: not given).
struct PriceOptions {
  std::string file;
  double usd_per_kWh = 0, write_off_years = 0;
};
// Reads a price list. Throws Error that names file, row and key, for unknown keys too.
PriceList load_prices(const PriceOptions& options);
PriceList parse_prices(std::string_view text, const std::string& path);

}  // namespace orrery
