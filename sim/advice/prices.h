#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The price of one kind of GPU, from a price file (models/data/prices.json). Dollars; nullopt: not known.
struct Price {
  std::string gpu;
  // Rent of one GPU for an hour, and the lowest and highest rent over providers.
  std::optional<double> cloud, cloud_low, cloud_high;
  std::optional<double> purchase;  // price of a node (machine with GPUs)
  std::int64_t purchase_gpus = 0;  // GPUs of such a node
  bool uncertain = false;
  std::string source;
};
// A list of prices of GPUs, of electricity and of the years over which owners write nodes off. 0: not known.
struct PriceList {
  std::string date;
  std::vector<Price> rows;
  double usd_per_kWh = 0;      // price of electricity
  double write_off_years = 0;  // years over which the price of a node is written off, in equal parts

  const Price* find(std::string_view gpu) const;
};
// A price list ("" = the built-in one), and figures given beside it (0: those of the list).
struct PriceOptions {
  std::string file;
  double usd_per_kWh = 0, write_off_years = 0;
};
// Throws Error with file, row and key, for unknown keys too.
PriceList load_prices(const PriceOptions& options);
PriceList parse_prices(std::string_view text, const std::string& path);

}  // namespace orrery
