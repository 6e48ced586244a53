#pragma once

#include <memory>

#include "exec/program/rendezvous.h"
#include "exec/transport/move_queue.h"
#include "models/plan/plan.h"

namespace orrery::cuda {

// The transport of a job whose ranks are processes with a GPU each: NCCL communicators for every (group, lane) that an
// op of the plan names, one per direction for messages along the pipeline (send_next meets receive_previous), whose ids
// go through the rendezvous. Every rank calls this at once and with the same ops and groups. Calls of a batch make one
// NCCL group. Algorithm "library" is NCCL's own collective; any other name is looked up in
// models/collectives/algorithms.h and carried out round after round with sends and receives. Queues are CudaQueues.
// check() throws where a communicator has failed; a communicator that did not end in order is aborted with the
// transport.
std::unique_ptr<QueuedTransport> nccl_transport(Rendezvous& rendezvous, std::int64_t rank, const Plan& plan);

}  // namespace orrery::cuda
