#pragma once

#include <cstdint>
#include <vector>

#include "exec/host/op_call.h"

namespace orrery {

// A run of bytes on its way between the device, its host and a disk: where it begins in the two buffers.
struct PlacedRun {
  Argument from, to;
  std::int64_t from_first = 0, to_first = 0;
  Bytes bytes = 0;
};

// The runs of bytes that a copy between device, host and disk moves.
std::vector<PlacedRun> runs_of(const OpCall& c, const PlaceCopy& work);

// Moves a run now, on this thread: between memory that the host can read, or to or from a disk. Throws Error when the
// disk fails.
void move_on_host(const PlacedRun& run);

}  // namespace orrery
