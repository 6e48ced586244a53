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

// The layers and other parts of the model that each rank of a class (ranks that do the same) holds in one chunk
// (virtual stage).
struct HeldChunk {
  std::int32_t chunk = 0;
  // whether the chunk has the vision encoder, the embedding, the output head
  bool vision = false, embedding = false, output = false;
  bool prediction = false;                // whether the chunk has the modules for multi-token prediction
  std::vector<std::int32_t> layers = {};  // numbers of layers, ascending
};

// The states that a rank of one class holds between steps: its chunks (virtual stages), and the bytes of parameters
// (older versions of weights included), gradients and optimizer states in the plan's buffers, for every memory tier
// (device, host, disks).
struct Holding {
  std::vector<HeldChunk> chunks;
  std::map<MemoryTier, Bytes> parameters, gradients, optimizer;
};

// Returns the states that ranks hold, one entry for each class of ranks (ranks that do the same), in the order of the
// plan.
std::vector<Holding> holdings_of(const Plan& plan);

Bytes sum_of(const std::map<MemoryTier, Bytes>& bytes);

// Returns ascending numbers as ranges: "0-7, 16-23".
std::string ranges_text(const std::vector<std::int32_t>& numbers);

// Returns the parts of the model in a chunk: "embedding, layers 0-7"; "no layers" for a chunk without any.
std::string chunk_text(const HeldChunk& chunk);

}  // namespace orrery
