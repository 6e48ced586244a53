#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"

namespace orrery {

// The times of one task. A transfer has four times: issued by the host, entered (this rank is ready), matched (the last
// member is ready), ended. Its cost is ended - matched, its waiting time is matched - entered. Other tasks are entered
// and matched at the same time.
struct Span {
  Picoseconds issued = 0, entered = 0, matched = 0, ended = 0;
  TaskId cause = kNone;  // the task at whose end this task could begin; kNone: this task waited only for the host
};

// The time at which the host of a class of ranks (slot), which had waited for the end of the task `cause`, continues
// and issues the tasks from `first` on.
struct HostResume {
  TaskId first = 0;
  Picoseconds time = 0;
  TaskId cause = kNone;
};

// The timeline of a plan, simulated or measured: one span per task of the plan. It does not contain the plan.
struct Trace {
  std::string source = "simulated";
  std::vector<Span> spans;
  // for each class of ranks (slot), the times at which its host continued after it had waited for a task, in order
  std::vector<std::vector<HostResume>> host;
  Picoseconds step_time = 0;          // time of all steps of the plan together
  Picoseconds clock_uncertainty = 0;  // uncertainty of differences between the clocks of ranks in a measured trace
};

// The bytes of each memory category that the ranks of a class (slot) have allocated from `time` on, until the next
// sample.
struct MemorySample {
  Picoseconds time = 0;
  std::uint32_t slot = 0;
  std::array<Bytes, kCategories> bytes{};
};

// Returns whether a task's host waits for the task's dependencies before it launches the task. The host never waits
// before the first task of a class of ranks.
bool waits_on_host(const Plan& plan, TaskId task);

// Returns the time when the host began to launch a task: when it had launched the previous task, and the tasks that it
// waits for had ended. The launch lasts until spans[task].issued. The host of every class of ranks begins at time 0.
Picoseconds launch_start(const Plan& plan, const Trace& trace, TaskId task);

// The part of a timeline that a report covers. For a plan of one step it is the complete timeline. In a plan of several
// steps, where stages may be in different steps at the same time, it lasts from the slowest stage's last update in the
// previous step to this stage's last update in the reported step. The slowest stage is taken because it sets the pace
// of all stages in a long run; in the few steps of a plan, a faster stage can run ahead on micro-batches that wait
// before the slowest one.
struct Period {
  Picoseconds begin = 0, end = 0;

  Picoseconds length() const { return end - begin; }
};
Period period_of(const Plan& plan, const Trace& trace, std::int64_t step);
inline Period period_of(const Plan& plan, const Trace& trace) { return period_of(plan, trace, plan.reported); }

// Returns the member of a match (all tasks of one transfer or collective) that entered last, so that the other members
// waited for it; the first such member if several entered at that time.
TaskId last_to_enter(const Plan& plan, const Trace& trace, std::uint32_t match);

}  // namespace orrery
