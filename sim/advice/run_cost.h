#pragma once

#include <optional>

#include "models/spec/spec.h"
#include "sim/advice/network_parts.h"
#include "sim/advice/prices.h"
#include "sim/report/goodput.h"

namespace orrery {

// The time and cost of a training run on a cluster with a given number of tokens. A nullopt stands for a figure that is
// not known, or for a run whose number of tokens is not given.
struct RunCost {
  FailurePlan failures;
  double goodput = 1;                    // share of the running time that is spent on steps which no failure undoes
  std::optional<double> days;            // number of days that the training run takes, failures included
  std::optional<double> cloud_usd;       // rent of the GPUs for the training run, US dollars
  std::optional<double> usd_per_Mtoken;  // rent of the GPUs per million tokens, US dollars
  // Price (US dollars) and power under full load (kW) of all nodes, and of the network as far as they are known.
  std::optional<double> purchase_usd, power_kW;
  // The switches and links of cluster.network, and their price (US dollars) and power (kW); none without that key.
  NetworkParts network;
  std::optional<double> network_usd, network_kW;
  bool has_sites = false;            // whether the nodes are at several sites; links between sites are not counted
  std::optional<double> energy_MWh;  // electricity in MWh that power_kW makes of the training run
  // The cost of the run to an owner of the nodes: the part of the nodes' price that is written off during the run, and
  // their electricity; switches and links are in it where cluster.network describes them. Buildings, cooling and
  // staff are left out.
  std::optional<double> owned_usd;
};

// The purchase price of the nodes of a cluster in dollars, if the price of one node with as many GPUs is known.
std::optional<double> nodes_usd(const Spec& spec, const PriceList& prices);

// Returns the figures of a spec's nodes and network that need no run.
RunCost bought(const Spec& spec, const PriceList& prices);

// Finds the time and cost of a training run. tokens: number of tokens of the run, 0 if not given; step: seconds of one
// step.
RunCost run_cost(const Spec& spec, double tokens, double tokens_per_s, Seconds step, const PriceList& prices);

}  // namespace orrery
