#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/goodput.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

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
struct PriceList {
  std::string date;
  std::vector<Price> rows;

  const Price* find(std::string_view gpu) const;
};
// Loads the built-in price list, or a file's. Throws Error with file, row and key, for unknown keys too.
PriceList load_prices(const std::string& path);
PriceList parse_prices(std::string_view text, const std::string& path);

// One machine and the best strategy on it: time and cost of a training run of so many tokens there. nullopt: not known,
// or no number of tokens given.
struct Machine {
  std::string name;  // "dgx-h100"
  std::int64_t gpus = 0, nodes = 0;
  std::string strategy;        // the best strategy; "" where none fits
  std::string excluded;        // why the machine cannot be chosen, "" if it can
  bool beyond_limits = false;  // excluded by --deadline, --budget or a lack of prices: not shown
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  Bytes memory = 0;  // bytes on the fullest GPU
  FailurePlan failures;
  double goodput = 1;
  std::optional<double> days;                  // days of the run, with failures
  std::optional<double> cloud_usd;             // rent of the run
  std::optional<double> purchase_usd;          // price of the nodes
  std::optional<double> usd_per_Mtoken;        // rent per million tokens
  std::optional<double> power_kW, energy_MWh;  // power and energy of the nodes as specified, at full power
  std::optional<Price> price;
};
// tokens: number of tokens of the run, 0 where none is given.
Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens);

// Machines that are excluded are only named, with the reason; a program that reads JSON sees `excluded`. A sample is in
// docs/guide.md, "Which strategy, and which machine".
std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, const Style& style);
std::string machines_json(const std::vector<Machine>& machines);  // a list, for orrery.search/1
std::string machines_csv(const std::vector<Machine>& machines);

}  // namespace orrery
