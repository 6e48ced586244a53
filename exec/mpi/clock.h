#pragma once

#include <mpi.h>

#include "models/base/units.h"

namespace orrery {

// What to add to this rank's steady clock to get rank 0's, and by how much that may be wrong: half of the shortest
// round trip out of several (Cristian 1989).
struct Clock {
  Picoseconds offset = 0, uncertainty = 0;
};

// Every rank of `world` calls it at once; ends with all of them together.
Clock clock_of(MPI_Comm world);

}  // namespace orrery
