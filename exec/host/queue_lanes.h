#pragma once

#include <array>
#include <memory>
#include <vector>

#include "exec/host/lanes.h"
#include "exec/host/task_queue.h"
#include "exec/memory/rank.h"

namespace orrery {

// The lanes of a rank whose device has in-order queues (GPU streams): one queue for each lane, or one for all. When a
// task is issued, the host enqueues waits for the tasks that it depends on, the task itself, and a mark of the task's
// end; inside a step, nothing on the device waits for the host. The begin of a task is not marked but computed, as the
// first moment at which the task was launched, its dependencies had ended and its queue was free; so one mark per task
// is enough. This class is used by one thread.
class QueueLanes final : public Lanes {
 public:
  // one_queue: all lanes share one queue, so that tasks run one after the other.
  QueueLanes(const Rank& rank, QueueDevice& device, QueuedTransport& transport, Watcher watcher, bool one_queue);

  void submit(Launch launch, Picoseconds issued) override;
  void flush() override;
  void wait(TaskId task) override;
  void wait_entered(TaskId task) override;
  void wait_all() override;
  bool completed(TaskId task) const override;
  bool entered(TaskId task) const override;
  void begin_step() override;
  void end_step() override;
  std::vector<std::vector<Span>> spans() override;

 private:
  // A queue and its tasks of the current step, in order; the first `ended` of these tasks are known to have ended.
  struct Held {
    std::unique_ptr<TaskQueue> queue;
    std::vector<TaskId> tasks;
    std::size_t ended = 0;
  };
  // Data recorded during a step. The times of the step's tasks (Span) are computed from these data later, when the
  // times of the tasks' end marks are known.
  struct Step {
    std::vector<Picoseconds> issued;
    // pairs of tasks: the first waits for the second because it reuses memory that the second used (Launch::after)
    std::vector<std::pair<TaskId, TaskId>> after;
  };

  Held& held_by(TaskId t) { return held_[queue_of_[t]]; }
  void wait_for_dependencies(const Launch& launch);
  void launch_now(const Launch& launch);
  void start_transfers();
  void ended(TaskId task);
  void poll();
  void poll(Held& held);
  template <class Condition>
  void wait_until(const Condition& condition);
  std::vector<Span> spans_of(const Step& step, const std::vector<Picoseconds>& ends) const;

  const Rank& rank_;
  QueueDevice& device_;
  QueuedTransport& transport_;
  Watcher watcher_;
  std::vector<Held> held_;
  std::vector<std::uint8_t> queue_of_;  // for each task, the number of the queue that runs it
  std::vector<std::uint32_t> place_;    // for each task, its index in its queue; kNone: not yet enqueued in this step
  std::vector<Launch> batch_;
  std::vector<Step> steps_;
};

}  // namespace orrery
