#pragma once

#include <mpi.h>

#include <memory>

#include "exec/transport/transport.h"
#include "models/plan/plan.h"
#include "models/run/lost_ranks.h"

namespace orrery {

// Returns the transport of a job whose rank r is rank r of `world`. The transport has a communicator for every group of
// ranks and every lane (queue of tasks) of the plan's ops; messages between stages have one communicator per direction
// (send_next is paired with receive_previous). All ranks construct it at the same time and start the same transfers in
// each group. The algorithm "library" is MPI's own non-blocking collective; other names are looked up in
// models/collectives/algorithms.h and carried out by synchronous sends. The transport must be destroyed before MPI is
// finalised, because its destructor frees communicators. Throws Error if the job and the plan differ in their numbers
// of ranks; start() throws for a lane or algorithm that the plan does not allow, and for a library collective with more
// elements than an MPI count holds. lost: the lost ranks, used and updated by chains of parameter servers; it must
// outlive the transport. nullptr: no rank is lost.
std::unique_ptr<Transport> mpi_transport(MPI_Comm world, const Plan& plan, LostRanks* lost = nullptr);

}  // namespace orrery
