#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/load/load_spec.h"
#include "models/run/peers.h"
#include "models/spec/spec.h"
#include "sim/advice/prices.h"
#include "sim/print/progress.h"

namespace orrery {

// orrery search: finds the best strategies that fit in memory, proves that no other strategy is better, and tells why
// other strategies are slower; with several machines, also which machine to choose and what a training run costs. The
// exit status is 1 if no strategy fits, or if the user stopped the search before the proof; the strategies found until
// then are printed. Throws Error for bad input.
struct SearchCommandOptions {
  std::string spec;
  SpecText text{};  // text of the spec, if the command has read it already
  std::vector<std::string> overrides;
  std::string profile;
  std::vector<std::int64_t> gpus;     // numbers of GPUs to search; empty: the number in the spec
  std::vector<std::string> clusters;  // names of node types to search; empty: the node type in the spec
  std::string objective = "time";     // quantity to minimize: time | cost | memory
  std::string maximize;               // quantity to maximize: micro_batch | sequence | layers, "" = none
  double max_memory_GiB = 0;          // GiB of a GPU's memory that may be used, 0 = all of it
  std::int64_t max_gpus = 0;
  double deadline_days = 0, budget_usd = 0, tokens = 0;
  PriceOptions prices;
  std::vector<std::string> against;  // settings of a strategy to compare with the best: "strategy.tensor=8"
  std::size_t top = 5;
  double within = 0;  // percent by which the strategy found may be slower than the best
  bool csv = false, pareto = false;
  std::string save;  // a file for the spec of the best strategy, "" = none
  const std::atomic<bool>* stop = nullptr;
  Peers* peers = nullptr;  // other processes that run the same command and get the same outcome

  Bytes max_memory() const { return static_cast<Bytes>(max_memory_GiB * kGiB); }
};
Outcome search_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
