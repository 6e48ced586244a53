#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// What the length of a step hangs on. A task begins when the task before it in its lane and its dependencies have ended
// and its host has launched it, a transfer when that holds for all its ends; a host launches one task after another and
// stops at host_waits. Taken from a trace, with the durations it has: how transfers slow compute down is not followed.

// Tasks that follow each other without a pause from the start to the last task's end. Between two of them there is time
// only where the host was late: then the second begins when it is launched (spans[].issued), and the host was at work,
// or waited for nothing but the first, since the first ended. Of a transfer the end that came last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// By task: how much longer it could take without the step taking longer, all else being equal (CPM's total float;
// Kelley, Critical-path planning and scheduling: mathematical basis, 1961). 0 along the critical path. The ends of a
// transfer share theirs.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
