#pragma once

#include <mpi.h>

#include "models/base/units.h"

namespace orrery {

// The offset to add to a time of this rank's steady clock to get the time of rank 0's steady clock. The largest
// possible error of the offset (uncertainty) is half of the shortest of several round trips (Cristian 1989).
struct Clock {
  Picoseconds offset = 0, uncertainty = 0;
};

// Measures the clock offset. All ranks of `world` must call this at the same time, and all return at about the same
// time.
Clock clock_of(MPI_Comm world);

}  // namespace orrery
