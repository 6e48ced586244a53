#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Bytes by category that are alive on the device clock: a buffer from the start of its first task to the end of its
// last. Sorted by slot, then time; one sample wherever the sum changes. State that lives from step to step counts
// throughout.
std::vector<MemorySample> live_memory(const Plan& plan, const Trace& trace);

}  // namespace orrery
