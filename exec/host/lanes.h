#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "exec/memory/buffers.h"
#include "models/trace/trace.h"

namespace orrery {

// A function that is called when a task begins and when it ends, by one thread at a time for each lane (queue of
// tasks).
using Watcher = std::function<void(TaskId, bool entered)>;

// Returns the time of this machine's steady clock in picoseconds.
inline Picoseconds host_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() * 1000;
}

// The lanes (in-order queues of tasks) of one rank: threads of a CPU rank, streams of a GPU. Each task is submitted
// once, in the plan's order of issue, and runs when the tasks that it depends on and the tasks in Launch::after have
// ended. Transfers of one batch start together. If a task has failed, the functions that wait throw its error.
class Lanes {
 public:
  virtual ~Lanes() = default;

  virtual void submit(Launch launch, Picoseconds issued) = 0;
  virtual void flush() = 0;            // closes the batch of transfers: no further transfer joins it
  virtual void wait(TaskId task) = 0;  // returns when the task has ended
  virtual void wait_entered(TaskId task) = 0;
  virtual void wait_all() = 0;  // returns when all submitted tasks have ended
  virtual bool completed(TaskId task) const = 0;
  virtual bool entered(TaskId task) const = 0;

  // Between begin_step() and end_step(), every task of the plan is submitted once. end_step() returns when all tasks
  // have ended; then the RunState holds the loss of the step.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // Returns the spans (times) of the tasks of all steps, available after the last step. Times are on this machine's
  // steady clock; the list of a step that was not timed is empty. `matched`, the time when all ranks of a transfer are
  // ready, is not measured: it equals `entered`.
  virtual std::vector<std::vector<Span>> spans() = 0;
};

}  // namespace orrery
