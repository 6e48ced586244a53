#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/base/memory_tier.h"
#include "models/base/units.h"
#include "models/plan/plan.h"

namespace orrery {

// The layers and other parts of the model that a class of ranks holds in one chunk (virtual stage).
struct HeldChunk {
  std::int32_t chunk = 0;
  bool vision = false, embedding = false, output = false;  // whether it has the vision encoder, the embedding, the head
  bool prediction = false;                                 // whether it has the modules for multi-token prediction
  std::vector<std::int32_t> layers = {};                   // numbers of layers, ascending
};

// The states that a rank of one class holds between steps: its chunks, and the bytes of parameters (older versions of
// weights included), gradients and optimizer states that the plan's buffers have, in every memory tier. The bytes of a
// category are by_tier[tier] of `parameters`, `gradients` and `optimizer`.
struct Holding {
  std::vector<HeldChunk> chunks;
  std::map<MemoryTier, Bytes> parameters, gradients, optimizer;
};

// Returns what the ranks of each class hold, by the class's index in the plan.
std::vector<Holding> holdings_of(const Plan& plan);

Bytes sum_of(const std::map<MemoryTier, Bytes>& bytes);

// Returns ascending numbers as ranges: "0-7, 16-23".
std::string ranges_text(const std::vector<std::int32_t>& numbers);

// Returns the parts of the model in a chunk: "embedding, layers 0-7"; "no layers" for a chunk without any.
std::string chunk_text(const HeldChunk& chunk);

}  // namespace orrery
