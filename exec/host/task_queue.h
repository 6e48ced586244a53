#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// An in-order queue of tasks on one rank's device, such as a CUDA stream. Calls enqueue work and never wait for it.
class TaskQueue : public MoveQueue {
 public:
  // Called before the first work of a task is enqueued, when the waits for other tasks have been enqueued.
  virtual void begin(const Launch&) {}
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void run(const Launch& launch) = 0;  // enqueues the kernels of a task that moves nothing between ranks
  // Returns memory in which a transfer packs scattered elements, valid until the next call.
  virtual std::byte* packing(Bytes bytes) = 0;
  virtual void mark_end(TaskId task) = 0;  // marks the end of all work enqueued in this queue so far
  virtual void wait_for(TaskId task) = 0;  // lets work enqueued later wait for the marked end of a task of any queue
};

// The functions of a device, besides its queues, that QueueLanes calls. Every queue marks the end of each task;
// has_ended() asks for the mark of the current step.
class QueueDevice {
 public:
  virtual ~QueueDevice() = default;
  virtual std::unique_ptr<TaskQueue> queue() = 0;
  virtual void begin_step() = 0;            // called before a step's first task, while all queues are empty
  virtual void end_step() = 0;              // called after a step's last task, when all queues are empty again
  virtual bool has_ended(TaskId task) = 0;  // whether the task's end mark is reached; never waits
  // Times at which the ends of tasks were marked, by step and task, on the host's steady clock; the list of a step
  // whose tasks were not timed is empty. Called once, after the last step.
  virtual std::vector<std::vector<Picoseconds>> ends() = 0;
};

}  // namespace orrery
