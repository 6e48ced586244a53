#pragma once

#include <mpi.h>

#include "exec/mpi/check.h"

namespace orrery {

inline int world_rank() {
  int rank = 0;
  ORRERY_CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

}  // namespace orrery
