#pragma once

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/engine/timing.h"
#include "sim/report/report.h"

namespace orrery {

// Shortens a report's step time by the time for which a step overlaps with the next, where pipeline stages do not wait
// for each other between steps (Plan::steps_overlap). That time is subtracted from the kinds of time in which ranks
// wait for each other, first from those at the start and end of a step.
void overlap_steps(Report& report, const Plan& plan, const Trace& trace);

// Returns the time from the end of one step to that of the next in a run of steps of two models on ranks of their own
// (SecondModel). No rank waits for others between steps, so that the frozen model may begin a step while the other one
// ends the step before; a step by itself takes longer.
Picoseconds period_of_models(const Plan& plan, const Timing& timing);
// Subtracts the time for which such a step overlaps with the next from the kinds of time in which ranks wait for each
// other: those of each model, in proportion to its ranks, and those of the report.
void overlap_models(Report& report, const Plan& plan, double overlap);

// Sets, for each of two models on GPUs of its own, the share of the step in which these compute nothing, from their
// numbers and the models' times.
void add_idle_shares(Report& report);

}  // namespace orrery
