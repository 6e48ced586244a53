#pragma once

#include <memory>

#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery {

// Where the ranks of a job that are threads of one process meet. A transfer is carried out by the host that comes last,
// on its own queue, which first waits for those of the others; they wait for it afterwards. The other hosts wait until
// it is enqueued, so that whatever a queue waits for has been enqueued before: no queue can wait in vain, and nothing
// on the device spins. It outlives the transports.
class Meetings {
 public:
  explicit Meetings(const Plan& plan);  // of any rank, or all: the groups count
  ~Meetings();
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  // Used by one thread.
  std::unique_ptr<QueuedTransport> transport(std::int64_t rank);
  // A rank is about to end: whoever waits for it, now or later, gets an Error.
  void fail();

 private:
  struct State;
  class ThreadsTransport;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
