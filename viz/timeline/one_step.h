#pragma once

#include "viz/timeline/steps.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// Returns the step of a trace of several steps, other than the first, whose length on all ranks together is the median
// one; -1 for a trace of one step.
int steady_step(const Timeline& timeline, const Steps& steps);

// Returns one step of a trace, from the begin of its first work (works()) on: all events of the step, and counters and
// arrows within its time. Processes, tracks and labels are those of the trace.
Timeline one_step(const Timeline& timeline, const Steps& steps, int step);

}  // namespace orrery
