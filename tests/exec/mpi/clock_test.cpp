#include "exec/mpi/clock.h"

#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "exec/host/lanes.h"

namespace orrery {
namespace {

// Processes of one machine read one clock: the measured offset must be zero within the stated uncertainty.
TEST(Clock, FindsNoOffsetWhereThereIsOneClock) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Clock clock = clock_of(MPI_COMM_WORLD);
  EXPECT_LE(std::abs(clock.offset), clock.uncertainty);
  EXPECT_EQ(clock.uncertainty == 0, rank == 0);  // a message takes time
  EXPECT_LT(clock.uncertainty, 1'000'000'000'000);
}

// The collective measurement of clocks returns on no rank before the last rank has called it.
TEST(Clock, EndsTogether) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  Picoseconds came = 0, last = 0;
  if (rank == 0) ::usleep(20'000);
  came = host_now();
  clock_of(MPI_COMM_WORLD);
  const Picoseconds left = host_now();
  MPI_Allreduce(&came, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_GE(left, last);
}

}  // namespace
}  // namespace orrery
