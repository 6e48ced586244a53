#include "models/trace.h"

#include <algorithm>

namespace orrery {

bool waits_on_host(const Plan& plan, TaskId task) {
  const bool first = task == plan.slots[plan.slot_of(task)].begin;
  return !first && plan.op_of(task).host_waits && !plan.dependencies_of(task).empty();
}

Picoseconds launch_start(const Plan& plan, const Trace& trace, TaskId task) {
  const bool first = task == plan.slots[plan.slot_of(task)].begin;
  Picoseconds start = first ? 0 : trace.spans[task - 1].issued;
  if (!waits_on_host(plan, task)) return start;
  for (const TaskId before : plan.dependencies_of(task)) start = std::max(start, trace.spans[before].ended);
  return start;
}

TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match) {
  const auto members = plan.members_of(match);
  return *std::max_element(members.begin(), members.end(),
                           [&](TaskId a, TaskId b) { return trace.spans[a].entered < trace.spans[b].entered; });
}

}  // namespace orrery
