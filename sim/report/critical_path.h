#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// The tasks on which the length of a step depends. A task begins when the task before it in the same lane and its
// dependencies have ended and the host has launched it, a transfer when that holds for all its ends; a host launches
// one task after another and stops at host_waits. The figures come from a trace, with the durations in it: that
// transfers slow compute down is not followed.

// Tasks that follow each other without a pause from the start to the end of the last task. Time lies between two of
// them only where the host was late: then the second begins when it is launched (spans[].issued), and since the end of
// the first the host was at work, or waited for nothing but the first. A transfer is represented by the end that came
// last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// By task: how much longer the task could take without the step taking longer, all else being equal (CPM's total float;
// Kelley, Critical-path planning and scheduling: mathematical basis, 1961). 0 along the critical path. The ends of a
// transfer share one figure.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
