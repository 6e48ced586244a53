#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Simulates a measured step again, with the measured durations of its tasks and the times at which its hosts went on
// after waits. The error of the step time that remains comes from order, waiting and overlap, not from durations. A
// compute task lasts from its begin in its lane to its end. A transfer lasts from when its last rank came until it
// ended on the first rank; if it ended later on another rank, the difference is added to the task that waits for it
// there. Each kind of wait between tasks (MeasuredTimes) is set to its mean in that step. No task is slowed by other
// tasks, because measured durations contain the slow-down already.
Trace replay(const Plan& unfolded, const Trace& measured);

}  // namespace orrery
