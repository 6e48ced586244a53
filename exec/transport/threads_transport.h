#pragma once

#include <memory>

#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery {

// The meeting point of a job's ranks that are threads of one process. The host thread that comes last carries out the
// transfer, on its queue, which first waits for the queues of the other ranks; these wait for it afterwards. The other
// host threads wait until the transfer is enqueued, so that the work that a queue waits for has always been enqueued
// before: no queue can wait in vain, and nothing on the device spins. It must outlive the transports.
class Meetings {
 public:
  explicit Meetings(const Plan& plan);  // any rank's plan, or the plan of all: only the groups are used
  ~Meetings();
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  // The transport of one rank; used by one thread.
  std::unique_ptr<QueuedTransport> transport(std::int64_t rank);
  // A rank is about to end: every rank that waits for it, now or later, gets an Error.
  void fail();

 private:
  struct State;
  class ThreadsTransport;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
