#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advice/run_cost.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

// How far the search of a machine has come.
enum class Reached : std::uint8_t { proven, not_proven, not_searched };

// One machine and the best strategy on it: time and cost of a training run of so many tokens there. nullopt: not known,
// or no number of tokens given.
struct Machine {
  std::string name;  // "dgx-h100"
  std::int64_t gpus = 0, nodes = 0;
  std::string strategy;  // the best strategy; "" where none fits
  std::string excluded;  // why the machine cannot be chosen, "" if it can
  Reached reached = Reached::not_searched;
  double gap = 1;  // share by which another strategy may be better (SearchResult)
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  double step_low_s = 0, step_high_s = 0;  // interval of the step (Report)
  Bytes memory = 0;                        // bytes on the fullest GPU
  RunCost cost;
  std::optional<double> power_kW;  // of the nodes at full power
  std::optional<Price> price;
};
// tokens: number of tokens of the run, 0 where none is given.
Machine make_machine(const Space& space, const SearchResult& result, const PriceList& prices, double tokens);

// The name of a machine in a table: its kind of node, or of GPU where the nodes are described in parts.
std::string machine_name(const Cluster& cluster);

// Seconds of training between two checkpoints: as given by the user, or those with which the least time is lost.
double saves_every(const Machine& machine);

// Tables with a row of every machine, and below them why some cannot be chosen. A sample is in docs/guide.md, "Which
// strategy, and which machine".
std::string machines_text(const std::vector<Machine>& machines, const PriceList& prices, const Style& style);
std::string machines_json(const std::vector<Machine>& machines);  // a list, for orrery.search/1
std::string machines_csv(const std::vector<Machine>& machines);

}  // namespace orrery
