#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A measured step played again by simulate() with the measured durations of its tasks (compute from entered to ended; a
// transfer from matched to its first end, the rest with the task that waited for a later end) and the times at which
// its hosts went on: errors that are left come from order, waiting and overlap, not from durations. The waits between
// tasks belong to the machine; each kind is taken as the mean of that step. No task is slowed: durations already
// contain the slowdown.
Trace replay(const Plan& unfolded, const Trace& measured);

}  // namespace orrery
