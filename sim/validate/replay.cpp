#include "sim/validate/replay.h"

#include <algorithm>

#include "sim/calibrate/calibration.h"
#include "sim/cost/host_work.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

// The time that the host needed to issue (launch) a task, without the host's waits before. Returns 0 for each task
// after the first kLaunchQueue of a rank: by then the launch queue may be full, so that the host also waits for free
// entries in the queue (exec/host/execute.cpp), which the engine does not simulate.
Picoseconds issue_of(const Plan& plan, const Trace& trace, TaskId t) {
  const TaskId first = plan.classes[plan.slot_of(t)].begin;
  const Picoseconds start = t == first ? 0 : launch_start(plan, trace, t);
  if (t >= first + kLaunchQueue) return 0;
  return std::max<Picoseconds>(0, trace.spans[t].issued - start);
}

// The time when the first of the ranks of a transfer had ended it; for a task that is no transfer, the task's end.
Picoseconds first_end(const Plan& plan, const Trace& trace, TaskId t) {
  const std::uint32_t match = plan.tasks[t].match;
  Picoseconds first = trace.spans[t].ended;
  if (match == kNone) return first;
  for (const TaskId m : plan.members_of(match)) first = std::min(first, trace.spans[m].ended);
  return first;
}

// The time to add to the duration of a task that waited for a transfer: how much later the transfer ended on the task's
// rank than on the rank where it ended first. This is needed because the engine ends a transfer on all ranks at the
// same time, while in a measured trace ranks end it at different times.
Picoseconds late_end(const Plan& plan, const Trace& trace, TaskId t) {
  const TaskId cause = trace.spans[t].cause;
  if (cause == kNone || !moves(plan.op_of(cause)) || trace.spans[cause].ended < trace.spans[t].issued) return 0;
  return trace.spans[cause].ended - first_end(plan, trace, cause);
}

Picoseconds duration_of(const Plan& plan, const Trace& trace, const Waits& waits, TaskId t) {
  const Span& s = trace.spans[t];
  if (!moves(plan.op_of(t))) {
    const Seconds beside = is_host_work(plan.op_of(t)) ? waits.host_start + waits.host_wake : waits.gap;
    return s.ended - s.entered + late_end(plan, trace, t) + picoseconds(beside);
  }
  const Seconds start = waits.busy[t] ? waits.busy_transfer_start : waits.transfer_start;
  return first_end(plan, trace, t) - s.matched + picoseconds(start + waits.wake);
}

}  // namespace

Trace replay(const Plan& unfolded, const Trace& measured) {
  const Waits waits = Observations::waits(unfolded, measured);
  Plan plan = unfolded;  // a copy in which each task has its own op, so that each can have its own duration
  Timing timing;
  timing.row_of_slot.assign(plan.classes.size(), 0);
  timing.rows.resize(1);
  std::vector<Op> ops;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    timing.rows[0].push_back(
        {.duration = duration_of(unfolded, measured, waits, t), .issue = issue_of(unfolded, measured, t)});
    plan.tasks[t].op = t;
    ops.push_back(unfolded.op_of(t));
  }
  plan.ops = std::move(ops);
  return simulate(plan, timing);
}

}  // namespace orrery
