#pragma once

#include <vector>

#include "sim/search/bound_cache.h"

namespace orrery {

// The least work of one pipeline stage: the costs of the layers of its chunks (virtual stages), summed.
struct StageWork {
  // Cost of one micro-batch in all chunks; `through` is the time of the first chunk alone.
  PassCost forward, backward, weight;
  Picoseconds last_forward = 0;  // time in which the forward of the stage's last layer computes
  // Time of the virtual stages before the stage's first one, without sends. head: forward; tail: backward.
  Picoseconds head = 0, tail = 0;
  std::int64_t first_place = -1;             // index in the model of the stage's first virtual stage
  std::int64_t layers = 0, last_layers = 0;  // number of layers in all chunks of the stage, and in its last chunk
  StageWeights weights;

  // Bytes of one micro-batch that output norm, logits and loss, behind the last layer, keep for backward.
  Bytes head_kept = 0;
  // Bytes allocated beyond the kept activations in the last chunk: in forward and backward of output norm, logits and
  // loss (head_...), and in forward and backward of the last layer (layer_...), each beyond the bytes that the block
  // itself and the blocks before it keep.
  Bytes head_forward = 0, head_backward = 0, layer_forward = 0, layer_backward = 0;
};

// Bytes and weights of one chunk (virtual stage). kept: bytes that a micro-batch keeps for backward; left: bytes of
// activations that are offloaded.
struct ChunkWork {
  Bytes kept = 0, left = 0;
  std::int64_t elements = 0;
};

// The least work and memory of the stages of a cell (strategies with the same RankLayout and MemoryPlan): sums of the
// costs of their layers. Transfers between stages and among replicas are not included, nor is the update.
struct CellWork {
  SearchCell cell;
  const ModelCut* cut = nullptr;  // the cut of the model into virtual stages
  const PlacedChunks* placed = nullptr;
  // Costs of layers without recomputation (plain), and with it (again).
  const StackCost *plain = nullptr, *again = nullptr;
  // Whether virtual stages are placed on pipeline stages in turn, as in interleaved 1F1B (ChunkPlacement).
  bool in_turn = true;
  bool splits = false;  // whether backward is split into input and weight gradients
  // Whether the schedule always overlaps the forward of one micro-batch with the backward of another, op by op.
  bool woven = false;
  bool units = false;  // whether gradients are reduced for each FSDP unit separately
  std::vector<StageWork> stages;
  std::vector<VirtualStage> virtual_stages;
  std::int64_t chunks = 1;             // number of chunks of a stage, over all copies of the model
  std::vector<ChunkWork> chunk_works;  // work of each chunk; the index is stage * chunks + chunk
};

// Whether the model can be cut into these virtual stages, and the rules allow such a strategy.
bool is_possible(LayoutCosts& costs, const MemoryPlan& memory_plan);

CellWork cell_work(LayoutCosts& costs, const MemoryPlan& memory_plan);

// The number of layers of each stage that run again in backward, at most; `layers`, the model's number of layers, where
// all layers do.
std::int64_t most_again(const MemoryPlan& memory_plan, std::int64_t layers);

// The least over all stages, each by itself, of the numbers of all weights, of experts' weights and of layers' weights.
StageWeights fewest_elements(const CellWork& work);

}  // namespace orrery
