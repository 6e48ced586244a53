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
  // Work enqueued here from now on runs after all work that `other` holds now.
  virtual void after(MoveQueue& other) = 0;
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;
  virtual void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
                       std::int64_t elements) = 0;
  // Scratch memory for the work that is enqueued until the next call.
  virtual std::byte* scratch(Bytes bytes) = 0;
};

// A transfer of one lane; it runs after the work that its queue holds, and before work that is enqueued there later.
struct QueuedCall {
  LaneKind lane = LaneKind::tensor;
  MoveQueue* queue = nullptr;
  std::variant<CollectiveCall, MessageCall> call;
};

// Moves bytes between the ranks of a job, as Transport does, for devices whose lanes are queues: nothing is polled, and
// a call has ended when its queue has passed it. Every member of a group starts the same calls on a lane in the same
// order; each call of a batch may wait for another of the batch.
class QueuedTransport {
 public:
  virtual ~QueuedTransport() = default;
  // Returns when the whole batch is enqueued, which may wait for the hosts of the other ranks.
  virtual void start(std::span<const QueuedCall> batch) = 0;
  // Throws Error when a connection has failed since the last call. Cheap.
  virtual void check() {}
};

}  // namespace orrery
