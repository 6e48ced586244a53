#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "exec/memory/buffers.h"
#include "models/trace/trace.h"

namespace orrery {

// Called when a task begins and ends, by one thread at a time for each lane.
using Watcher = std::function<void(TaskId, bool entered)>;

// The time on this machine's steady clock.
inline Picoseconds host_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() * 1000;
}

// The in-order queues of one rank on its device: threads of a CPU rank, streams of a GPU. Each task is submitted once,
// in issue order, and runs when the tasks that it depends on and those in Launch::after have ended; transfers of one
// batch start together. Lanes make no other decisions. The waits throw the errors of tasks.
class Lanes {
 public:
  virtual ~Lanes() = default;

  virtual void submit(Launch launch, Picoseconds issued) = 0;
  virtual void flush() = 0;            // no further transfer joins the last batch
  virtual void wait(TaskId task) = 0;  // waits until the task has ended
  virtual void wait_entered(TaskId task) = 0;
  virtual void wait_all() = 0;  // waits until all submitted tasks have ended
  virtual bool completed(TaskId task) const = 0;
  virtual bool entered(TaskId task) const = 0;

  // Between begin and end of a step every task is submitted once. end_step() waits for all; then the run state's loss
  // is that of the step.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // Spans of the tasks of all steps, once the steps have ended; times are on this machine's steady clock, and each
  // span's `matched` equals `entered`.
  virtual std::vector<std::vector<Span>> spans() = 0;
};

}  // namespace orrery
