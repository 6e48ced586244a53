#pragma once

#include <mpi.h>

#include "models/base/units.h"

namespace orrery {

// The offset to add to this rank's steady clock to get rank 0's, and the largest error of the offset: half of the
// shortest round trip out of several (Cristian 1989).
struct Clock {
  Picoseconds offset = 0, uncertainty = 0;
};

// Every rank of `world` calls this at once; the calls end together.
Clock clock_of(MPI_Comm world);

}  // namespace orrery
