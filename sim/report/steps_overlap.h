#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/report/report.h"

namespace orrery {

// Shortens a report's step time by the time for which a step overlaps with the next, where pipeline stages do not wait
// for each other between steps (Plan::steps_overlap). That time is subtracted from the kinds of time in which ranks
// wait for each other, first from those at the start and end of a step.
void overlap_steps(Report& report, const Plan& plan, const Trace& trace);

}  // namespace orrery
