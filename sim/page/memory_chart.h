#pragma once

#include <span>
#include <string>

#include "models/trace/trace.h"

namespace orrery {

// The memory of one rank over time, to be drawn. samples: samples of one class of ranks, by time; length: the time that
// they cover; capacity: bytes of the device; held: the most bytes that the rank takes of it, with what is not allocated
// (cached segments of the allocator, CUDA context, buffers of NCCL).
struct MemoryChart {
  std::span<const MemorySample> samples;
  Picoseconds length = 0;
  Bytes capacity = 0, held = 0;
};

// The bytes of each category over time, one on top of the other, with the lines of `held` and of the capacity, and a
// legend. Of many samples each slot of time shows the one with the most bytes. "" without samples.
std::string memory_chart(const MemoryChart& chart);

}  // namespace orrery
