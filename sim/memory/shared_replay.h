#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/host_times.h"

namespace orrery {

// The moments of one replay of allocations whose order decides what happens in it: requests for memory, and frees that
// wait for an event. Each request first frees what waits for events that have completed by then; times matter in no
// other way. A class of ranks with an equal plan, whose events complete between the same requests, therefore has the
// same replay, whatever its times are. Tasks are counted from the first of the class.
class ReplayMoments {
 public:
  // Notes a request for memory while the host issues a task (HostTimes::now).
  void request(TaskId task, TaskId behind, bool checked, int step);
  // Notes that a block is freed when the later of two tasks has ended, each in its step of the replay; kNone: one task.
  void wait(TaskId task, int step, TaskId other, int other_step);
  // Notes a task that keeps its buffers until it has ended, which counts as not kept if it ends at time 0.
  void keep(TaskId task) { kept_.push_back(task); }
  // Gives up sharing, where times matter in other ways.
  void give_up() { shared_ = false; }

  // Finds, by the times of the class itself, before which request each event completes. first: the first task of the
  // class. Returns whether the replay can be shared.
  bool close(const HostTimes& host, const Trace& trace, TaskId first);
  // Returns whether the events of another class with an equal plan, with first task `first`, complete between the same
  // requests.
  bool same_for(const HostTimes& host, const Trace& trace, TaskId first) const;

 private:
  struct Request {
    TaskId task = 0, behind = kNone;
    int step = 0;
    bool checked = false;
  };
  struct Wait {
    TaskId task = 0, other = kNone;
    int step = 0, other_step = 0;
    // number of requests before the free, and before the event completes
    std::uint32_t after = 0, until = 0;
  };

  // The times of all requests, which need not rise, and for each the latest up to it.
  struct Times {
    std::vector<Picoseconds> now, latest;
  };
  Times request_times(const HostTimes& host, const Trace& trace, TaskId first) const;
  static Picoseconds end_of(const Wait& wait, const Trace& trace, TaskId first);
  bool keeps_all(const Trace& trace, TaskId first) const;

  std::vector<Request> requests_;
  std::vector<Wait> waits_;
  std::vector<TaskId> kept_;
  std::size_t waits_at_request_ = 0;  // number of waits when the last request was noted
  bool shared_ = true;
};

// Returns whether the tasks and buffers of two classes of ranks are equal, up to the numbers of tasks, buffers and
// frames. frames: for each class, its frames.
bool equal_plans(const Plan& plan, std::uint32_t slot, std::uint32_t other,
                 const std::vector<std::vector<std::uint32_t>>& frames);

}  // namespace orrery
