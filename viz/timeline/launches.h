#pragma once

#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// For each event of a trace, the host's call that launched it, and the host's operator (or annotation of the program)
// to which that call belongs; kNoEvent if the trace does not tell, and for events of the host. Empty if the trace has
// no calls that launch.
struct Launches {
  std::vector<EventId> call, op;
  bool empty() const { return call.empty(); }
};

// Finds the launches in traces of PyTorch's profiler, of any version. A kernel's call has the same correlation id. Its
// operator has the kernel's "External id" or, in versions that repeat the correlation id there, is the innermost one
// that ran on the call's thread at the time of the call. Ids are compared within one file and rank only.
Launches launches_of(const Timeline& t);

}  // namespace orrery
