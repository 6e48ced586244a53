#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// A queue of one rank's device that tasks run on: a stream of a GPU. Calls only enqueue.
class TaskQueue : public MoveQueue {
 public:
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void run(const Launch& launch) = 0;  // the kernels of a task that moves nothing
  // Memory for what a transfer packs, until the next call.
  virtual std::byte* packing(Bytes bytes) = 0;
  virtual void mark_end(TaskId task) = 0;  // of what is enqueued here so far
  virtual void wait_for(TaskId task) = 0;  // what follows runs after the end that was marked, on any queue
};

// What queue_lanes.h needs of a device beside its queues. Marks are those of the step that runs.
class QueueDevice {
 public:
  virtual ~QueueDevice() = default;
  virtual std::unique_ptr<TaskQueue> queue() = 0;
  virtual void begin_step() = 0;            // all queues are empty
  virtual void end_step() = 0;              // all queues are empty again
  virtual bool has_ended(TaskId task) = 0;  // its mark; never waits
  // When the marks of every step were reached, on the host's steady clock; once, when all steps have ended.
  virtual std::vector<std::vector<Picoseconds>> ends() = 0;
};

}  // namespace orrery
