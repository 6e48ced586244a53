#include "exec/mpi/clock.h"

#include "exec/host/lanes.h"
#include "exec/mpi/check.h"

namespace orrery {
namespace {

constexpr int kRoundTrips = 20;

// Sends the time of rank 0's clock to another rank several times; that rank keeps the answer with the shortest round
// trip.
void answer(MPI_Comm world, int from) {
  for (int i = 0; i < kRoundTrips; ++i) {
    Picoseconds now = 0;
    ORRERY_CHECK_MPI(MPI_Recv(&now, 1, MPI_INT64_T, from, 0, world, MPI_STATUS_IGNORE));
    now = host_now();
    ORRERY_CHECK_MPI(MPI_Send(&now, 1, MPI_INT64_T, from, 0, world));
  }
}

Clock ask(MPI_Comm world) {
  Clock best = {0, -1};
  for (int i = 0; i < kRoundTrips; ++i) {
    const Picoseconds sent = host_now();
    Picoseconds there = sent;
    ORRERY_CHECK_MPI(MPI_Send(&there, 1, MPI_INT64_T, 0, 0, world));
    ORRERY_CHECK_MPI(MPI_Recv(&there, 1, MPI_INT64_T, 0, 0, world, MPI_STATUS_IGNORE));
    const Picoseconds half = (host_now() - sent) / 2;
    if (best.uncertainty < 0 || half < best.uncertainty) best = {there - sent - half, half};
  }
  return best;
}

}  // namespace

Clock clock_of(MPI_Comm world) {
  int rank = 0, size = 1;
  ORRERY_CHECK_MPI(MPI_Comm_rank(world, &rank));
  ORRERY_CHECK_MPI(MPI_Comm_size(world, &size));
  Clock clock;
  if (rank > 0) clock = ask(world);
  for (int from = 1; rank == 0 && from < size; ++from) answer(world, from);
  ORRERY_CHECK_MPI(MPI_Barrier(world));
  return clock;
}

}  // namespace orrery
