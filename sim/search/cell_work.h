#pragma once

#include <vector>

#include "sim/search/bound_cache.h"

namespace orrery {

// The least work of one stage: blocks of its chunks, summed.
struct StageWork {
  PassCost forward, backward, weight;  // cost of one micro-batch in all chunks; through: in the first chunk alone
  Picoseconds last_forward = 0;        // busy time of the forward of the last layer
  Picoseconds head = 0, tail = 0;      // head: forward, tail: backward time of the virtual stages before, without hops
  std::int64_t first_place = -1;       // virtual stage of the first chunk
  std::int64_t layers = 0, last_layers = 0;  // layers of all chunks, and of the last one
  StageWeights weights;

  // Bytes that the blocks after the last layer keep of one micro-batch.
  Bytes head_kept = 0;
  // Bytes held beyond the kept activations in the last chunk: in forward and backward of the blocks after the last
  // layer, and in forward and backward of the last layer, each beyond the bytes that the block and the blocks before it
  // keep.
  Bytes head_forward = 0, head_backward = 0, layer_forward = 0, layer_backward = 0;
};

// Bytes and weights of one chunk. kept: bytes that a micro-batch keeps; left: bytes of activations that leave the
// device.
struct ChunkWork {
  Bytes kept = 0, left = 0;
  std::int64_t elements = 0;
};

// The least that the stages of a cell compute and keep: sums of the costs of their blocks. Transfers between stages and
// among replicas are no part of it, nor is the update.
struct CellWork {
  SearchCell cell;
  const ModelCut* cut = nullptr;  // the cut of the model that the cell uses
  const PlacedChunks* placed = nullptr;
  const StackCost *plain = nullptr, *again = nullptr;  // blocks that run once, and those that run again in backward
  bool in_turn = true;                                 // whether chunks lie on the stages in turn (ChunkPlacement)
  bool splits = false;                                 // whether backward is split
  bool woven = false;                                  // whether actions are always woven
  bool units = false;                                  // whether gradients are reduced unit by unit
  std::vector<StageWork> stages;
  std::vector<VirtualStage> virtual_stages;
  std::int64_t chunks = 1;             // chunks of a stage, of all copies of the model
  std::vector<ChunkWork> chunk_works;  // [stage * chunks + chunk]
};

// Whether the model can be cut so, and the rules allow the cell.
bool is_possible(LayoutCosts& costs, const MemoryPlan& memory_plan);

CellWork cell_work(LayoutCosts& costs, const MemoryPlan& memory_plan);

// Layers of a stage that run again in backward; all where the number is no less than the model's.
std::int64_t most_again(const MemoryPlan& memory_plan, std::int64_t layers);

// The fewest elements, expert elements and layer elements of any stage.
StageWeights fewest_elements(const CellWork& work);

}  // namespace orrery
