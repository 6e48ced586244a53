#pragma once

#include <memory>

#include "exec/program/rendezvous.h"
#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery::cuda {

// Returns the transport of a job whose ranks are processes with a GPU each. The transport has an NCCL communicator for
// every (group of ranks, lane) of the plan's ops; messages between stages have one communicator per direction
// (send_next is paired with receive_previous). NCCL's unique ids are exchanged through the rendezvous. All ranks
// construct it at the same time and start the same transfers in each group. The calls of a batch form one NCCL group.
// The algorithm "library" is NCCL's own collective; other names are looked up in models/collectives/algorithms.h and
// carried out by sends and receives, round after round. The queues of the calls must be CudaQueues. check() throws if a
// communicator has failed; the destructor aborts communicators after a failure.
std::unique_ptr<QueuedTransport> nccl_transport(Rendezvous& rendezvous, std::int64_t rank, const Plan& plan);

}  // namespace orrery::cuda
