#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Which tasks the length of a step depends on. A task can begin when the task before it in the same lane (stream) and
// its dependencies have ended and the host has launched it; for a transfer this must hold on all ranks. A host launches
// one task after another and stops where a task tells it to wait (host_waits). Durations are those of the trace: that
// compute would be faster without some transfer beside it is not considered.

// The chain of tasks that decides the step time: each begins as soon as the one before it ends, up to the end of the
// last task. There is time between two of them only where the host was late: the second then begins when it is launched
// (spans[].issued). A transfer appears as its task on the rank that entered last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// For each task, the time in picoseconds by which it could take longer without lengthening the step, all else being
// equal (the total float of the critical path method; Kelley, Critical-path planning and scheduling: mathematical
// basis, 1961). It is 0 along the critical path; all tasks of one transfer have the same figure.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
