#pragma once

#include <memory>

#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery {

// Transfers between ranks that are threads of one process. The host thread that comes last enqueues the transfer on its
// queue, which first waits for the queues of the other ranks; these then wait for it. The other host threads wait until
// the transfer is enqueued, so the work that a queue waits for is always enqueued already: no queue waits for ever, and
// nothing on the device spins. This object must outlive the transports.
class Meetings {
 public:
  // plan: any rank's plan, or that of all ranks, because only the groups are used.
  explicit Meetings(const Plan& plan);
  ~Meetings();
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  // The transport of one rank; used by one thread.
  std::unique_ptr<QueuedTransport> transport(std::int64_t rank);
  // Called by a rank that is about to end with a failure: every rank that waits for it, now or later, gets an Error.
  void fail();

 private:
  struct State;
  class ThreadsTransport;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
