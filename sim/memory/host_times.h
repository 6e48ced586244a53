#pragma once

#include <utility>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/replay.h"

namespace orrery {

// When the host of one class of ranks issues the tasks of a simulated step, on which the memory follows. plan, trace,
// options: must outlive this object.
class HostTimes {
 public:
  HostTimes(const Plan& plan, const Trace& trace, const MemoryOptions& options, std::uint32_t slot);

  // The time at which the host issues a task. Only a share (host_part) of the simulated launch time since the host last
  // waited keeps the host busy; in the rest the device starts kernels.
  Picoseconds issue(TaskId t) const;

  // The time from which the host may issue a task: when it issues it, not before `behind`, the last task that must have
  // begun for the task to have room in the launch queue (kNone: there is room), has begun, nor, if `checked`, before
  // the task itself begins, whose host reads a result first.
  Picoseconds now(TaskId t, TaskId behind, bool checked, Picoseconds lag) const;

 private:
  const Plan& plan_;
  const Trace& trace_;
  const MemoryOptions& options_;
  const std::uint32_t slot_;
  std::pair<TaskId, TaskId> filling_;  // the tasks during which the host runs further ahead of the device
};

}  // namespace orrery
