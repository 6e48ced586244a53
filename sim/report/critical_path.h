#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// The tasks on which the length of a step depends. A task begins when the task before it in the same lane (stream) and
// its dependencies have ended and the host has launched it, a transfer when that holds on all its ranks; a host
// launches one task after another and stops where a task tells it to wait (host_waits). All durations are those of the
// trace: that a step without some transfer would also compute faster is not considered.

// Tasks that follow each other without a pause from the start to the end of the last task. Time lies between two of
// them only where the host was late: then the second begins when it is launched (spans[].issued), and since the end of
// the first the host was busy, or waited for the first alone. A transfer is represented by the rank that came last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// By task: how much longer the task could take without the step taking longer, all else being equal (CPM's total float;
// Kelley, Critical-path planning and scheduling: mathematical basis, 1961). 0 along the critical path. The ends of a
// transfer on its ranks share one figure.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
