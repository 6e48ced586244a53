#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// An in-order queue of one rank's device that tasks run on: a stream of a GPU. Calls only enqueue.
class TaskQueue : public MoveQueue {
 public:
  // Called before the first work of a task is enqueued, behind its waits.
  virtual void begin(const Launch&) {}
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void run(const Launch& launch) = 0;  // enqueues the kernels of a task that moves nothing between ranks
  // Memory into which a transfer packs scattered elements, valid until the next call.
  virtual std::byte* packing(Bytes bytes) = 0;
  virtual void mark_end(TaskId task) = 0;  // marks the end of all work enqueued here so far
  virtual void wait_for(TaskId task) = 0;  // later work here runs after the marked end of the task, on any queue
};

// Functions of a device, beside the queues, that queue_lanes.h needs. Marks are those of the current step.
class QueueDevice {
 public:
  virtual ~QueueDevice() = default;
  virtual std::unique_ptr<TaskQueue> queue() = 0;
  virtual void begin_step() = 0;            // all queues are empty
  virtual void end_step() = 0;              // all queues are empty again
  virtual bool has_ended(TaskId task) = 0;  // whether the task's mark is reached; never waits
  // Times at which the marks of every step were reached, on the host's steady clock; called once, when all steps have
  // ended.
  virtual std::vector<std::vector<Picoseconds>> ends() = 0;
};

}  // namespace orrery
