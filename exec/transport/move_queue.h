#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "exec/transport/transport.h"

namespace orrery {

// An in-order queue of copies and sums between addresses that all ranks of a process share: a stream of a GPU. Calls
// only enqueue. One thread at a time.
class MoveQueue {
 public:
  virtual ~MoveQueue() = default;
  // What is enqueued here from now on runs after all that the other holds now.
  virtual void after(MoveQueue& other) = 0;
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;
  virtual void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
                       std::int64_t elements) = 0;
  // Memory for what is enqueued until the next call.
  virtual std::byte* scratch(Bytes bytes) = 0;
};

// A transfer of one lane, which runs after what its queue holds, and before what is enqueued there later.
struct QueuedCall {
  LaneKind lane = LaneKind::tensor;
  MoveQueue* queue = nullptr;
  std::variant<CollectiveCall, MessageCall> call;
};

// Moves bytes between the ranks of a job, as Transport does, for devices whose lanes are queues: nothing is polled, a
// call has ended when its queue is through it. Every member of a group starts the same calls on a lane in the same
// order; the calls of one batch may be mutual.
class QueuedTransport {
 public:
  virtual ~QueuedTransport() = default;
  // Returns when all of the batch is enqueued, which may wait for the hosts of the other ends.
  virtual void start(std::span<const QueuedCall> batch) = 0;
  // Throws Error when a connection has failed since. Cheap.
  virtual void check() {}
};

}  // namespace orrery
