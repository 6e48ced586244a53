#pragma once

#include <span>

#include "benchmarks/simgrid/flow_sets.h"

namespace orrery::flows {

// Play a set of flows to the end, write the time in seconds at which each flow ends, and return the processor time in
// seconds that this took, without the making of the network.
double play_fair_share(const FlowSet& set, std::span<double> ends);
double play_simgrid(const FlowSet& set, std::span<double> ends);

// Returns the processor time of this process so far, in seconds.
double processor_time();

}  // namespace orrery::flows
