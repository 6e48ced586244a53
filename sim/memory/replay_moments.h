#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/host_times.h"

namespace orrery {

// The moments of one replay of allocations whose order decides what happens in it: requests for memory, frees that wait
// for an event, and retries of requests that did not fit. Each request first frees what waits for events that have
// completed by then, and a retry waits for all events; times matter in no other way. A class of ranks with an equal
// plan, whose events complete between the same requests, therefore has the same replay, whatever its times are. Tasks
// are counted from the first of the class.
class ReplayMoments {
 public:
  // Notes a request for memory at the time `now`, while the host issues a task (HostTimes::now).
  void request(TaskId task, TaskId behind, bool checked, int step, Picoseconds now);
  // Notes that the last request is retried: the host waits for all events, and every block that waits for one is freed.
  void retry();
  // Notes that a block is freed when the later of two tasks has ended, each in its step of the replay; kNone: one task.
  void wait(TaskId task, int step, TaskId other, int other_step);
  // Notes a task that keeps its buffers until it has ended, which counts as not kept if it ends at time 0.
  void keep(TaskId task) { kept_.push_back(task); }
  // Gives up sharing, where times matter in other ways.
  void give_up() { shared_ = false; }

  // Finds, by the times of the class itself, before which moment each event completes. first: the first task of the
  // class. Returns whether the replay can be shared.
  bool close(const Trace& trace, TaskId first);
  // Returns whether the events of another class with an equal plan, with first task `first`, complete between the same
  // requests.
  bool same_for(const HostTimes& host, const Trace& trace, TaskId first) const;

 private:
  // A request, or a retry of the request before it.
  struct Moment {
    TaskId task = 0, behind = kNone;
    int step = 0;
    bool checked = false, retry = false;
  };
  struct Wait {
    TaskId task = 0, other = kNone;
    int step = 0, other_step = 0;
    // number of moments before the free, and before the event completes; no event is waited for after a retry
    std::uint32_t after = 0, until = 0;
  };

  struct OtherClass;
  Picoseconds time_of(std::uint32_t moment, std::span<const Wait> ending, OtherClass& of, const Trace& trace,
                      TaskId first) const;
  std::vector<Picoseconds> latest(const std::vector<Picoseconds>& times) const;
  std::uint32_t retry_from(std::uint32_t moment) const;
  static Picoseconds end_of(const Wait& wait, const Trace& trace, TaskId first);
  bool keeps_all(const Trace& trace, TaskId first) const;

  std::vector<Moment> moments_;
  std::vector<Picoseconds> times_;      // time of each moment in the class itself, until close()
  std::vector<std::uint32_t> retries_;  // indices of moments that are retries
  std::vector<Wait> waits_;             // after close() in the order in which their events complete
  std::vector<TaskId> kept_;
  std::size_t waits_at_request_ = 0;  // number of waits when the last request was noted
  bool shared_ = true;
};

}  // namespace orrery
