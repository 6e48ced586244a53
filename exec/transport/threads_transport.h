#pragma once

#include <memory>

#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery {

// Transfers between ranks that are threads of one process. The host thread that reaches the transfer last enqueues it
// on its queue; that queue first waits for the queues of the other ranks, which then wait for the transfer. The other
// host threads wait until the transfer is enqueued. So the work that a queue waits for is always enqueued already, no
// queue waits for ever, and no kernel polls on the device. This object must outlive the transports.
class Meetings {
 public:
  // plan: the plan of any rank or of all ranks; only its groups are used.
  explicit Meetings(const Plan& plan);
  ~Meetings();
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  // Returns the transport of one rank; only one thread uses it.
  std::unique_ptr<QueuedTransport> transport(std::int64_t rank);
  // Called by a rank that is about to end with a failure: every rank that waits for it, now or later, gets an Error.
  void fail();

 private:
  struct State;
  class ThreadsTransport;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
