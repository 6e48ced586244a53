#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advice/run_cost.h"
#include "sim/print/section.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

// How far the search for the best strategy on a machine has come.
enum class Reached : std::uint8_t { proven, not_proven, not_searched };

// One machine, the best strategy on it, and the time and cost of a training run with this strategy. A nullopt stands
// for a figure that is not known, or that needs the number of tokens of the run, which is not given.
struct Machine {
  std::string name;  // name of the node type: "dgx-h100"
  std::int64_t gpus = 0, nodes = 0;
  std::string strategy;  // the best strategy in words; "" if no strategy fits
  std::string excluded;  // reason why the machine cannot be chosen, "" if it can
  Reached reached = Reached::not_searched;
  double gap = 1;  // largest share by which a strategy that was not simulated may beat the best one found
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  double step_low_s = 0, step_high_s = 0;  // lowest and highest likely value of step_s, in seconds
  Bytes memory = 0;                        // peak memory in bytes of the fullest GPU
  RunCost cost;
  std::optional<Price> price;
};
// Describes one machine and the best strategy that a search has found for it. tokens: number of tokens of the training
// run, 0 if none is given.
Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens);

// The name of a machine in a table: its node type, or its GPU where the spec describes the nodes in detail.
std::string machine_name(const Cluster& cluster);

// Seconds of training between two checkpoints, as given by the user or else chosen so that the least time is lost.
double saves_every(const Machine& machine);

// A price as a line: "price of a100-sxm-80gb: 1.30 $ a GPU and hour (0.80 to 3.00), uncertain; SOURCE".
std::string price_line(const Price& price);

// Two tables with a row for every machine: the first shows its best strategy, the second the training run with that
// strategy, with notes on costs and prices below.
std::vector<Section> machines_sections(const std::vector<Machine>& machines, const PriceList& prices);

// Tables with a row for every machine, and below them the reasons why some machines cannot be chosen. A sample is in
// docs/guide.md, "Which strategy, and which machine".
std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, const Style& style);
// The machines as a JSON list, the member `machines` of schema orrery.search/1.
std::string machines_json(const std::vector<Machine>& machines);
std::string machines_csv(const std::vector<Machine>& machines);

}  // namespace orrery
