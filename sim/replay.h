#pragma once

#include "models/measured_times.h"
#include "models/plan.h"
#include "models/trace.h"

namespace orrery {

// A measured step played again by simulate() with the durations that its own tasks had (of a transfer ended - matched,
// the mean of its ends; of compute ended - entered) and the times at which its hosts went on: what is then wrong is
// order, waiting and overlap, not durations. waits: what lies between tasks (gap, transfer_start, wake) is the
// machine's, not the tasks'. Nothing is slowed: measured durations have that in them.
Trace replay(const Plan& unfolded, const Trace& measured, const MeasuredTimes& waits);

}  // namespace orrery
