#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Bytes by category (weights, gradients, activations, ...) that are alive while the device runs: a buffer counts from
// the start of the first task that uses it to the end of the last. There is a sample at every moment at which the bytes
// change, sorted by class of ranks, then time. Weights, optimizer states and all else that lives from step to step
// count throughout.
std::vector<MemorySample> live_memory(const Plan& plan, const Trace& trace);

}  // namespace orrery
