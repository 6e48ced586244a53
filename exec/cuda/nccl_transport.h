#pragma once

#include <memory>

#include "exec/program/rendezvous.h"
#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery::cuda {

// The transport of a job whose ranks are processes with a GPU each. It has an NCCL communicator for every (group of
// ranks, lane) that the plan's ops name, and for messages along the pipeline one per direction (send_next is paired
// with receive_previous); NCCL's ids are exchanged through the rendezvous. All ranks construct it at once and start the
// same transfers in each group. The calls of a batch form one NCCL group. The algorithm "library" is NCCL's own
// collective; other names are looked up in models/collectives/algorithms.h and carried out by sends and receives, round
// after round. Queues are CudaQueues. check() throws if a communicator has failed; the destructor aborts communicators
// after a failure.
std::unique_ptr<QueuedTransport> nccl_transport(Rendezvous& rendezvous, std::int64_t rank, const Plan& plan);

}  // namespace orrery::cuda
