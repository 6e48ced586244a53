#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/replay.h"

namespace orrery {

// How much later than in the simulated trace the host of one class of ranks issues tasks. To retry a failed allocation,
// the host waits until the device has ended the work that cached blocks wait for. It issues later tasks late by that
// wait, up to the next point where it waits anyway; being less far ahead of the device, it has fewer buffers allocated
// at the same time. trace: must outlive this object.
class HostLag {
 public:
  HostLag(const Trace& trace, std::uint32_t slot) : trace_(trace), slot_(slot) {}

  // The time by which the host is late at a task, which is not before the last one at which it fell behind.
  Picoseconds at(TaskId t) const { return t < until_ ? lag_ : 0; }
  // Must be called when the host, issuing task t, waits for the device; nothing changes unless `wait` is above 0.
  void fall_behind(TaskId t, Picoseconds wait);
  // Must be called when a step begins, for which the host is not late.
  void restart() { until_ = 0; }

 private:
  const Trace& trace_;
  std::uint32_t slot_;
  Picoseconds lag_ = 0;
  TaskId until_ = 0;  // first task for which the host is not late any more
};

// Returns the first task of the update of a class of ranks, which follows the last pass of the last micro-batch.
TaskId update_of(const Plan& plan, const RankClass& ranks);

// Whether a class of ranks, whose sets of buffers are given, computes the loss of the model that trains.
bool computes_loss(const Plan& plan, const RankClass& ranks, const std::vector<std::uint32_t>& frames);

struct Ahead {
  TaskId first, until;  // the tasks from `first` on, and before `until`
};

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

  std::uint32_t slot() const { return slot_; }
  HostLag lag() const { return {trace_, slot_}; }  // the host before it falls behind

 private:
  const Trace& trace_;
  const MemoryOptions& options_;
  const std::uint32_t slot_;
  // For each stretch of tasks between two waits of the host, those during which it runs further ahead of the device;
  // empty where it never does.
  std::vector<Ahead> ahead_;
};

}  // namespace orrery
