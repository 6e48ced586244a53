#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"

namespace orrery {

// The times of one task. Transfers have four times: issued by the host, entered (this end is ready), matched (the last
// member has come in), ended: cost = ended - matched, waiting = matched - entered. Other tasks enter and match at once.
struct Span {
  Picoseconds issued = 0, entered = 0, matched = 0, ended = 0;
  TaskId cause = kNone;  // the task whose end let this one enter; kNone: nothing but the host
};

// The host of a slot went on at `time`, when `cause` had ended; it issues the tasks from `first` on.
struct HostResume {
  TaskId first = 0;
  Picoseconds time = 0;
  TaskId cause = kNone;
};

// The timeline of a plan, simulated or measured: one span per task of the plan. It knows no plan; a reader has both.
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

// The time when the host turned to a task: the host had launched the task before, and the tasks that it waits for had
// ended. The host launches from then until spans[task].issued. A slot's host begins at 0.
Picoseconds launch_start(const Plan& plan, const Trace& trace, TaskId task);

// The period of the step that a report is of: a plan's only step; or, in a plan of several, from the last stage's last
// update of the step before to that of the step itself, while other stages are in other steps.
struct Period {
  Picoseconds begin = 0, end = 0;

  Picoseconds length() const { return end - begin; }
};
Period period_of(const Plan& plan, const Trace& trace, std::int64_t step);
inline Period period_of(const Plan& plan, const Trace& trace) { return period_of(plan, trace, plan.reported); }

// The member of a match that the other members waited for; the first of several.
TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match);

}  // namespace orrery
