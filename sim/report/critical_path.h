#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// The tasks on which the length of a step depends. A task begins when the task before it in the same lane (stream) and
// its dependencies have ended and the host has launched it; a transfer begins when this is so for its tasks on all
// ranks; a host launches one task after another and stops where a task tells it to wait (host_waits). All durations are
// taken from the trace: it is not considered that a step without some transfer would also compute faster.

// Tasks that follow each other without a pause from the start to the end of the last task. There is time between two of
// them only where the host was late: then the second begins when it is launched (spans[].issued), and since the end of
// the first the host was busy, or waited for the first alone. A transfer is represented by its task on the rank that
// entered last.
std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace);

// For each task, the additional time that the task could take without the step taking longer, all else being equal (the
// total float of the critical path method; Kelley, Critical-path planning and scheduling: mathematical basis, 1961). 0
// along the critical path. The tasks of one transfer share one figure.
std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace);

}  // namespace orrery
