#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Bytes by category (weights, gradients, activations, ...) that are alive while the device runs: a buffer counts from
// the start of its first task to the end of its last. Samples are sorted by class of ranks, then time; there is one
// wherever the bytes change. Weights, optimizer states and whatever else lives from step to step count throughout.
std::vector<MemorySample> live_memory(const Plan& plan, const Trace& trace);

}  // namespace orrery
