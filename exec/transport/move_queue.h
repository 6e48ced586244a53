#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "exec/transport/transport.h"

namespace orrery {

// An in-order queue of copies and sums between addresses that all ranks of a process share, such as a CUDA stream.
// Calls enqueue work and do not wait for it. A queue is used by one thread at a time.
class MoveQueue {
 public:
  virtual ~MoveQueue() = default;
  // Lets work that is enqueued here later wait for all work that `other` holds now.
  virtual void after(MoveQueue& other) = 0;
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;
  virtual void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
                       std::int64_t elements) = 0;
  // Returns scratch memory for the work that is enqueued until scratch() is called again.
  virtual std::byte* scratch(Bytes bytes) = 0;
};

// A transfer on one lane (queue of tasks). It runs after the work that `queue` holds when the transfer is started, and
// before the work that `queue` gets later.
struct QueuedCall {
  LaneKind lane = LaneKind::tensor;
  MoveQueue* queue = nullptr;
  std::variant<CollectiveCall, MessageCall> call;
};

// Transfers data between the ranks of a job, like Transport, for devices whose lanes are in-order queues: nothing is
// polled, and a call has ended when its queue has reached the call's end. Every member of a group starts the same calls
// on a lane in the same order. The calls of a batch start together, because they may be mutual: two ranks may send to
// and receive from each other.
class QueuedTransport {
 public:
  virtual ~QueuedTransport() = default;
  // Starts the transfers of a batch. Returns when all are enqueued, for which it may have to wait for the host threads
  // of other ranks.
  virtual void start(std::span<const QueuedCall> batch) = 0;
  // Throws Error when a connection has failed since the last call. The check is cheap.
  virtual void check() {}
};

}  // namespace orrery
