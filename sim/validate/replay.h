#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A measured step played again by simulate() with the durations that its own tasks had (of compute from entered to
// ended; of a transfer from matched to its first end, the rest with the task that waited for a later one) and the times
// at which its hosts went on: what is then wrong is order, waiting and overlap, not durations. What lies between tasks
// is the machine's, and is taken as that step's mean of each kind. Nothing is slowed: durations have that in them.
Trace replay(const Plan& unfolded, const Trace& measured);

}  // namespace orrery
