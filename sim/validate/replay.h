#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A measured step simulated again by simulate(), with the measured durations of its tasks (compute from entered to
// ended; a transfer from matched to its first end on a rank, the time up to a later end with the task that waited for
// it) and the times at which its hosts went on: errors that are left come from order, waiting and overlap, not from
// durations. The waits between tasks belong to the machine; each kind is taken as the mean of that step. No task is
// slowed by others: measured durations already contain the slowdown.
Trace replay(const Plan& unfolded, const Trace& measured);

}  // namespace orrery
