#pragma once

#include <atomic>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/engine/timing.h"

namespace orrery {

// Thrown when the user has stopped the simulation.
struct Stopped {};

// Simulates the steps of a plan event by event, from idle devices to the last task. Lanes (streams) run their tasks in
// issue order. A task enters its lane when the tasks it depends on have ended, the lane is free and the host has issued
// the task; a transfer starts when the tasks of all its ranks have entered their lanes. A running transfer slows
// compute of the same rank (OpTiming::pressure). Times are whole picoseconds and ties are broken by task id, so that
// the same plan and timing give the same trace on every machine. Throws Stopped within milliseconds after `stop` is
// set, and Error if a plan that was not checked deadlocks.
Trace simulate(const Plan& plan, const Timing& timing, const std::atomic<bool>* stop = nullptr);

// A trace of a simulation that is given up as soon as the step is known to end after `latest`. The trace is correct up
// to that moment; later tasks are missing from it.
struct PartTrace {
  Trace trace;
  bool late = false;  // whether the simulation was given up because the step ends after `latest`
};
PartTrace simulate_until(const Plan& plan, const Timing& timing, Picoseconds latest,
                         const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
