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

// The launch of one event; kNoEvent where it is not found.
struct KernelLaunch {
  EventId call = kNoEvent, op = kNoEvent;
};
// Finds the launch of one event without finding those of all: the call with its correlation id among the last events of
// each of the host's rows before the event begins (at most kMostSearched of them, some 30 ms), and the operator that
// was running on the call's thread.
inline constexpr EventId kMostSearched = 100'000;
KernelLaunch launch_of(const Timeline& t, EventId e, EventId most_searched = kMostSearched);

}  // namespace orrery
