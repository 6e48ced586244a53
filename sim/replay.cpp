#include "sim/replay.h"

#include <algorithm>

#include "sim/simulate.h"

namespace orrery {
namespace {

// The host's own time for a task; what it waited before is not in it. Beyond the launch queue it waits for room
// (exec/execute.cpp), which the engine does not play.
Picoseconds issue_of(const Plan& plan, const Trace& trace, TaskId t) {
  const TaskId first = plan.slots[plan.slot_of(t)].begin;
  const Picoseconds start = t == first ? 0 : launch_start(plan, trace, t);
  if (t >= first + kLaunchQueue) return 0;
  return std::max<Picoseconds>(0, trace.spans[t].issued - start);
}

Picoseconds transfer_time(const Plan& plan, const Trace& trace, TaskId t) {
  const std::uint32_t match = plan.tasks[t].match;
  if (match == kNone) return trace.spans[t].ended - trace.spans[t].matched;
  Picoseconds sum = 0;
  const auto members = plan.members_of(match);
  for (const TaskId m : members) sum += trace.spans[m].ended - trace.spans[m].matched;
  return sum / static_cast<Picoseconds>(members.size());
}

}  // namespace

Trace replay(const Plan& unfolded, const Trace& measured, const MeasuredTimes& waits) {
  Plan plan = unfolded;  // an op of its own for every task
  Timing timing;
  timing.row_of_slot.assign(plan.slots.size(), 0);
  timing.rows.resize(1);
  std::vector<Op> ops;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = unfolded.op_of(t);
    const Span& s = measured.spans[t];
    OpTiming time{.duration = s.ended - s.entered + picoseconds(waits.gap), .issue = issue_of(unfolded, measured, t)};
    if (moves(op))
      time.duration = transfer_time(unfolded, measured, t) + picoseconds(waits.transfer_start + waits.wake);
    timing.rows[0].push_back(time);
    plan.tasks[t].op = t;
    ops.push_back(op);
  }
  plan.ops = std::move(ops);
  return simulate(plan, timing);
}

}  // namespace orrery
