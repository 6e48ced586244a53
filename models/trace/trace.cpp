#include "models/trace/trace.h"

#include <algorithm>

namespace orrery {

bool waits_on_host(const Plan& plan, TaskId task) {
  const bool first = task == plan.classes[plan.slot_of(task)].begin;
  return !first && plan.op_of(task).host_waits && !plan.dependencies_of(task).empty();
}

Picoseconds launch_start(const Plan& plan, const Trace& trace, TaskId task) {
  const bool first = task == plan.classes[plan.slot_of(task)].begin;
  Picoseconds start = first ? 0 : trace.spans[task - 1].issued;
  if (!waits_on_host(plan, task)) return start;
  for (const TaskId before : plan.dependencies_of(task)) start = std::max(start, trace.spans[before].ended);
  return start;
}

// Returns the time when a stage's last update of a step had ended; 0 for the step before the first.
static Picoseconds end_of_step(const Plan& plan, const Trace& trace, std::int64_t stage, std::int64_t step) {
  const std::int64_t last = (step + 1) * plan.step_micro_batches() - 1;
  Picoseconds end = 0;
  if (step < 0) return end;
  for (const RankClass& slot : plan.classes) {
    for (TaskId t = slot.begin; slot.stage == stage && t < slot.end; ++t) {
      const bool update = std::holds_alternative<Update>(plan.op_of(t).work);
      if (update && plan.frames[plan.tasks[t].frame].micro_batch == last) end = std::max(end, trace.spans[t].ended);
    }
  }
  return end;
}

// Returns the stage that takes longest for two steps together, the reported one and the one before it; of several such
// stages, the last.
static std::int64_t slowest_stage(const Plan& plan, const Trace& trace) {
  const std::int64_t last = plan.classes.back().stage;
  std::int64_t slowest = last;
  Picoseconds longest = 0;
  for (std::int64_t stage = last; stage >= 0; --stage) {
    const Picoseconds both =
        end_of_step(plan, trace, stage, plan.reported) - end_of_step(plan, trace, stage, plan.reported - 2);
    if (both <= longest) continue;
    longest = both;
    slowest = stage;
  }
  return slowest;
}

Period period_of(const Plan& plan, const Trace& trace, std::int64_t step) {
  if (plan.steps == 1) return {0, trace.step_time};
  const std::int64_t stage = slowest_stage(plan, trace);
  return {end_of_step(plan, trace, stage, step - 1), end_of_step(plan, trace, stage, step)};
}

TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match) {
  const auto members = plan.members_of(match);
  return *std::max_element(members.begin(), members.end(),
                           [&](TaskId a, TaskId b) { return trace.spans[a].entered < trace.spans[b].entered; });
}

}  // namespace orrery
