#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Memory bound of a strategy that cannot fit however large the GPU's memory is, since the host's memory is too small.
inline constexpr Bytes kNoRoom = Bytes{1} << 60;

// Lower bounds of a stage's peak of allocated bytes. held: without weights gathered ahead of use; prefetched: with
// weights gathered ahead of use.
struct StageMemory {
  Bytes held = 0, prefetched = 0;
};

// Lower bound of the memory of the fullest rank: states, activations kept for backward when most micro-batches are
// alive, temporary bytes of the next pass, weights that stay gathered, and NCCL's buffers.
struct MemoryBound {
  Bytes least = 0;      // lower bound of the bytes on the fullest rank; kNoRoom if the host has too little memory
  Bytes on_device = 0;  // lower bound of the bytes on the fullest rank, whatever memory the host has
  std::vector<StageMemory> stages;
};

MemoryBound memory_bound(LayoutCosts& costs, const CellWork& work);
// The memory bound of one strategy of the cell (all with one RankLayout and MemoryPlan), given its overlaps and its
// order of ranks.
Bytes memory_with(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const Features& features);
// The memory bound if the stages run their passes in the order `order`: the most bytes allocated when a stage has most
// micro-batches alive.
Bytes memory_in(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const KnownOrder& order);
// Whether recomputing more layers can only lower the memory bound of strategies with this memory plan.
bool frees_memory(const CellWork& work);

}  // namespace orrery
