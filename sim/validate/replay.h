#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A measured step simulated again by simulate(), with the measured durations of its tasks and the times at which its
// hosts continued after waits. The remaining errors of step time come from order, waiting and overlap, not from
// durations. A compute task lasts from entered to ended; a transfer from matched to its end on the first rank, and the
// time until its end on another rank is added to the task that waits there. Each kind of wait between tasks
// (MeasuredTimes) is set to its mean in that step. No task is slowed by other tasks, because measured durations already
// contain the slow-down.
Trace replay(const Plan& unfolded, const Trace& measured);

}  // namespace orrery
