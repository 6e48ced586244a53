#pragma once

#include <span>
#include <string>

#include "models/trace/trace.h"

namespace orrery {

// The data of a chart of one rank's memory over time. samples: memory samples of one class of ranks (ranks that do the
// same), by time; length: the time that they cover; capacity: bytes of the device; held: the rank's peak of device
// memory, which includes bytes that are not allocated to buffers (cached segments of the allocator, CUDA context,
// buffers of NCCL).
struct MemoryChart {
  std::span<const MemorySample> samples;
  Picoseconds length = 0;
  Bytes capacity = 0, held = 0;
};

// A chart of the bytes of each memory category over time, stacked, with lines at `held` and at the capacity, and a
// legend. The time is divided into intervals of equal length, and each shows the sample with the most bytes in it. ""
// without samples.
std::string memory_chart(const MemoryChart& chart);

}  // namespace orrery
