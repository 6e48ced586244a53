#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Memory bound of a strategy for which no device makes room: the host lacks the memory.
inline constexpr Bytes kNoRoom = Bytes{1} << 60;

// Bytes that a stage holds at least; prefetched: where weights are gathered ahead.
struct StageMemory {
  Bytes held = 0, prefetched = 0;
};

// Lower bound of the memory of a cell's fullest rank: states, the activations that forwards keep where a stage has most
// of them alive, the bytes that the next pass needs beside these, the weights that stay gathered, and NCCL's buffers.
struct MemoryBound {
  Bytes least = 0;      // kNoRoom where the host lacks memory
  Bytes on_device = 0;  // bytes on the device, whether or not the host has room
  std::vector<StageMemory> stages;
};

MemoryBound memory_bound(LayoutCosts& costs, const CellWork& work);
// The bound of a point of the cell.
Bytes memory_with(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const Features& features);
// Bytes held where a stage has most micro-batches alive in this order.
Bytes memory_in(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const KnownOrder& order);
// Whether a cell that runs more layers again has a memory bound no higher than that of the cell.
bool frees_memory(const CellWork& work);

}  // namespace orrery
