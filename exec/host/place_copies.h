#pragma once

#include <cstdint>
#include <vector>

#include "exec/host/op_call.h"

namespace orrery {

// A contiguous range of bytes to be copied between device, host and disk, with its offset in bytes in each of the two
// buffers.
struct PlacedRun {
  Argument from, to;
  std::int64_t from_first = 0, to_first = 0;
  Bytes bytes = 0;
};

// Returns the contiguous ranges of bytes that a memcpy between device, host and disk moves.
std::vector<PlacedRun> runs_of(const OpCall& c, const PlaceCopy& work);

// Copies a contiguous range of bytes on the calling thread: within host memory, or to or from a disk. Throws Error if
// the disk fails.
void move_on_host(const PlacedRun& run);

}  // namespace orrery
