#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"

namespace orrery {

// The times of one task. Transfers have four times: issued by the host, entered (this end is ready), matched (the last
// member is ready), ended: cost = ended - matched, waiting = matched - entered. Other tasks are entered and matched at
// the same time.
struct Span {
  Picoseconds issued = 0, entered = 0, matched = 0, ended = 0;
  TaskId cause = kNone;  // the task whose end let this one enter; kNone: it waited only for the host
};

// The moment `time` at which the host of a slot, which had waited for `cause`, goes on and issues the tasks from
// `first` on.
struct HostResume {
  TaskId first = 0;
  Picoseconds time = 0;
  TaskId cause = kNone;
};

// The timeline of a plan, simulated or measured: one span per task of the plan. It does not contain the plan.
struct Trace {
  std::string source = "simulated";
  std::vector<Span> spans;
  std::vector<std::vector<HostResume>> host;  // resumes of each slot's host, in order
  Picoseconds step_time = 0;                  // time of all steps that the plan holds
  Picoseconds clock_uncertainty = 0;          // uncertainty between the clocks of ranks in a measured trace
};

// Bytes that a slot holds from `time` on, until its next sample.
struct MemorySample {
  Picoseconds time = 0;
  std::uint32_t slot = 0;
  std::array<Bytes, kCategories> bytes{};
};

// Whether a task's host waits for its dependencies before it launches the task. Nothing holds the host at a slot's
// first task.
bool waits_on_host(const Plan& plan, TaskId task);

// The time when the host began to launch a task: it had launched the task before, and the tasks that it waits for had
// ended. The host launches from then until spans[task].issued. A slot's host begins at 0.
Picoseconds launch_start(const Plan& plan, const Trace& trace, TaskId task);

// The time span of the step that a report covers: the only step of a plan; or, in a plan of several steps, from the
// last stage's last update of the step before to that of the step itself, while other stages may be in other steps.
struct Period {
  Picoseconds begin = 0, end = 0;

  Picoseconds length() const { return end - begin; }
};
Period period_of(const Plan& plan, const Trace& trace, std::int64_t step);
inline Period period_of(const Plan& plan, const Trace& trace) { return period_of(plan, trace, plan.reported); }

// The member of a match that entered last, so that the other members waited for it; the first of several.
TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match);

}  // namespace orrery
