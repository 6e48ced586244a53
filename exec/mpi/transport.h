#pragma once

#include <mpi.h>

#include <memory>

#include "exec/transport/transport.h"
#include "models/plan/plan.h"
#include "models/run/lost_ranks.h"

namespace orrery {

// The transport of a job whose rank r is rank r of `world`: a communicator for every (group, lane) that an op of the
// plan names, one per direction for messages along the pipeline (send_next meets receive_previous). Every rank calls
// this at once and with the same ops and groups. Algorithm "library" is MPI's own non-blocking collective; any other
// name is looked up in models/collectives/algorithms.h and carried out move by move with synchronous sends. The
// destructor frees the communicators, which must be before MPI ends. Throws Error if the job has another number of
// ranks than the plan; start() throws for a lane or algorithm that does not fit, and for a library collective of more
// elements than an MPI count holds. lost: the lost ranks, which chains of servers do without and add to; it must
// outlive the transport. nullptr: no rank is lost.
std::unique_ptr<Transport> mpi_transport(MPI_Comm world, const Plan& plan, LostRanks* lost = nullptr);

}  // namespace orrery
