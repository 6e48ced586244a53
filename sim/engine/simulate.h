#pragma once

#include <atomic>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/engine/timing.h"

namespace orrery {

// Thrown when the user does not want the result any more.
struct Stopped {};

// Plays a plan event by event. Lanes run their tasks in issue order; a task enters when the tasks it depends on have
// ended, its lane is free and its host has issued it; a transfer starts when all its ends have entered. While transfers
// run, compute of the same rank is slowed by their pressure. Whole picoseconds, ties by task id: the same plan and
// timing give the same trace everywhere.
// Throws Stopped within milliseconds after `stop` is set, and Error where an unchecked plan deadlocks.
// The steps of the plan, from idle devices to the last task.
Trace simulate(const Plan& plan, const Timing& timing, const std::atomic<bool>* stop = nullptr);

// The same simulation, given up as soon as the step is known to end after `latest`: the trace is true up to that
// moment, and a task that has not entered by then never enters.
struct PartTrace {
  Trace trace;
  bool late = false;  // whether the simulation was given up
};
PartTrace simulate_until(const Plan& plan, const Timing& timing, Picoseconds latest,
                         const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
