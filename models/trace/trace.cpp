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

// Returns the time when the last stage's last update in a step had ended.
static Picoseconds end_of_step(const Plan& plan, const Trace& trace, std::int64_t step) {
  const std::int64_t last = (step + 1) * plan.step_micro_batches() - 1, stage = plan.classes.back().stage;
  Picoseconds end = 0;
  for (const RankClass& slot : plan.classes) {
    for (TaskId t = slot.begin; slot.stage == stage && t < slot.end; ++t) {
      const bool update = std::holds_alternative<Update>(plan.op_of(t).work);
      if (update && plan.frames[plan.tasks[t].frame].micro_batch == last) end = std::max(end, trace.spans[t].ended);
    }
  }
  return end;
}

Period period_of(const Plan& plan, const Trace& trace, std::int64_t step) {
  if (plan.steps == 1) return {0, trace.step_time};
  return {step == 0 ? 0 : end_of_step(plan, trace, step - 1), end_of_step(plan, trace, step)};
}

TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match) {
  const auto members = plan.members_of(match);
  return *std::max_element(members.begin(), members.end(),
                           [&](TaskId a, TaskId b) { return trace.spans[a].entered < trace.spans[b].entered; });
}

}  // namespace orrery
