#pragma once

#include <vector>

#include "sim/search/bound_cache.h"

namespace orrery {

// The least work of one pipeline stage: the costs of the layers of all its chunks (virtual stages), summed.
struct StageWork {
  // Cost of one micro-batch's passes, summed over all chunks of the stage. Only the field `through` is no sum: it is
  // that of the stage's first chunk.
  PassCost forward, backward, weight;
  Picoseconds last_forward = 0;  // compute time of the forward of the stage's last layer
  // Time that a micro-batch needs in the virtual stages before this stage's first one, sends not counted. head: in
  // forward; tail: in backward.
  Picoseconds head = 0, tail = 0;
  std::int64_t first_place = -1;             // index in model order of the stage's first virtual stage; -1: none
  std::int64_t layers = 0, last_layers = 0;  // number of layers in all chunks of the stage, and in its last chunk
  StageWeights weights;

  // Bytes of activations that the final norm, logits and loss keep for backward, for one micro-batch.
  Bytes head_kept = 0;
  // Temporary bytes, beyond the activations kept so far, in the stage's last chunk: in forward and backward of final
  // norm, logits and loss (head_...), and in forward and backward of the last layer (layer_...).
  Bytes head_forward = 0, head_backward = 0, layer_forward = 0, layer_backward = 0;
};

// Bytes and weights of one chunk (virtual stage). kept: bytes of activations that a micro-batch keeps on the device for
// backward; left: bytes of activations that a micro-batch offloads; elements: number of weights,
// those of experts left out.
struct ChunkWork {
  Bytes kept = 0, left = 0;
  std::int64_t elements = 0;
};

// The least work and memory of the stages of a cell (strategies with the same RankLayout and MemoryPlan): sums of the
// costs of layers. Transfers between stages and among replicas are not included, nor is the optimizer update.
struct CellWork {
  SearchCell cell;
  const ModelCut* cut = nullptr;         // the cut of the model into virtual stages
  const ModelCut* second_cut = nullptr;  // that of the frozen model beside it; null if there is none
  const PlacedChunks* placed = nullptr;
  // Costs of the model's blocks without recomputation (plain), and with it (again).
  const ModelCost *plain = nullptr, *again = nullptr;
  // Whether virtual stage k is on stage k modulo the number of stages, as in interleaved 1F1B
  // (ChunkPlacement::in_turn).
  bool in_turn = true;
  bool splits = false;  // whether backward is split into input and weight gradients
  // Whether the schedule always overlaps the forward of one micro-batch with the backward of another, op by op.
  bool woven = false;
  bool units = false;  // whether gradients are reduced for each FSDP unit separately
  std::vector<StageWork> stages;
  std::vector<VirtualStage> virtual_stages;
  std::int64_t chunks = 1;             // number of chunks (virtual stages) of a stage, over all copies of the model
  std::vector<ChunkWork> chunk_works;  // work of each chunk; the index is stage * chunks + chunk
};

// Whether the model can be cut into the virtual stages of this memory plan, and the rules for strategies allow the
// plan.
bool is_possible(LayoutCosts& costs, const MemoryPlan& memory_plan);

CellWork cell_work(LayoutCosts& costs, const MemoryPlan& memory_plan);

// Returns an upper limit on the number of layers that one stage recomputes in backward: 0 if nothing is recomputed;
// `layers` (the number of the model's layers, which no stage exceeds) if everything is; otherwise the number of layers
// for a stage that the memory plan states.
std::int64_t most_again(const MemoryPlan& memory_plan, std::int64_t layers);

// The least number of elements on any stage, separately for experts' weights (expert_elements), for all others
// (elements), and for those of the others that are in layers (layer_elements).
StageWeights fewest_elements(const CellWork& work);

}  // namespace orrery
