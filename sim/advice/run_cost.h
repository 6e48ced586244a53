#pragma once

#include <optional>

#include "models/spec/spec.h"
#include "sim/explain/goodput.h"

namespace orrery {

// The time, rent and energy of a training run of so many tokens on a cluster. nullopt: not known, or no tokens given.
struct RunCost {
  FailurePlan failures;
  double goodput = 1;          // share of the time spent on steps that are not lost
  std::optional<double> days;  // with failures
  std::optional<double> cloud_usd;
  std::optional<double> usd_per_Mtoken;
  std::optional<double> energy_MWh;  // of the nodes at full power
};

// tokens: of the whole run; 0: none given. usd_per_hour: rent of one GPU, if known.
RunCost run_cost(const Spec& spec, double tokens, double tokens_per_s, Seconds step,
                 const std::optional<double>& usd_per_hour);

}  // namespace orrery
