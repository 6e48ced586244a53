#pragma once

#include <optional>

#include "models/spec/spec.h"
#include "sim/advice/prices.h"
#include "sim/explain/goodput.h"

namespace orrery {

// The time and cost of a training run of so many tokens on a cluster. nullopt: not known, or no tokens given.
struct RunCost {
  FailurePlan failures;
  double goodput = 1;                    // share of the time spent on steps that are not lost
  std::optional<double> days;            // with failures
  std::optional<double> cloud_usd;       // rent of the run
  std::optional<double> usd_per_Mtoken;  // rent of a million tokens
  std::optional<double> purchase_usd;    // price of the nodes
  std::optional<double> energy_MWh;      // of the nodes at full power
  // The cost to an owner of the nodes: the share of their price that is written off during the run, and their
  // electricity. Buildings, cooling, staff and a network's switches are left out.
  std::optional<double> owned_usd;
};

// The price of the nodes of a cluster, if that of one node with as many GPUs is known.
std::optional<double> purchase_usd(const Spec& spec, const PriceList& prices);

// tokens: of the whole run; 0: none given.
RunCost run_cost(const Spec& spec, double tokens, double tokens_per_s, Seconds step, const PriceList& prices);

}  // namespace orrery
