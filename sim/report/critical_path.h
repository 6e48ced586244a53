#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// This header finds the tasks on which the length of a step depends. A task can begin when the task before it in the
// same lane (stream) and its dependencies have ended and the host has launched it; for a transfer this must hold on all
// ranks. A host launches one task after another and stops if a task tells it to wait (host_waits). Durations are those
// of the trace: it is not considered that compute would be faster without a transfer beside it.

// Returns the chain of tasks that decides the step time: each task begins as soon as the one before it ends, up to the
// end of the last task. Between two tasks of the chain time passes only if the host was late: then the second task
// begins when it is launched (spans[].issued). A transfer appears as its task on the rank that entered last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// Returns, for each task, the time in picoseconds by which the task could take longer without lengthening the step, all
// else being equal (the total float of the critical path method; Kelley, Critical-path planning and scheduling:
// mathematical basis, 1961). The time is 0 along the critical path; all tasks of one transfer have the same figure.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
