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

// orrery search: finds the best strategies that fit, with proof, and why the others lose; with several machines, also
// which machine to choose and what it costs. Exit status 1 where nothing fits, or the user stopped the search before
// the proof; then the strategies found so far are printed. Throws Error for bad input.
struct SearchCommandOptions {
  std::string spec;
  SpecText text{};  // text of the spec, as the command has read it
  std::vector<std::string> overrides;
  std::string profile;
  std::vector<std::int64_t> gpus;     // numbers of GPUs to search; empty: the spec's
  std::vector<std::string> clusters;  // names of node types to search; empty: the spec's
  std::string objective = "time";     // time | cost | memory
  std::string maximize;               // micro_batch | sequence | layers, "" = nothing
  double max_memory_GiB = 0;          // memory of a GPU that may be used, 0 = all of it
  std::int64_t max_gpus = 0;
  double deadline_days = 0, budget_usd = 0, tokens = 0;
  PriceOptions prices;
  std::vector<std::string> against;  // settings of a strategy to compare with the best: "strategy.tensor=8"
  std::size_t top = 5;
  double within = 0;  // percent by which the strategy found may be slower than the best
  bool csv = false, pareto = false;
  std::string save;  // a file for the spec of the best strategy, "" = none
  const std::atomic<bool>* stop = nullptr;
  Peers* peers = nullptr;  // processes that run the same command and get the same outcome

  Bytes max_memory() const { return static_cast<Bytes>(max_memory_GiB * 1073741824.0); }
};
Outcome search_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
