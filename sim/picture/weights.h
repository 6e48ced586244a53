#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A weight of one block of the plan. name: without the layer's number. tiles: the tiles of a weight that is cut into
// tiles, else the whole weight as one. state: the frame (a block's instance) that holds the weight from step to step;
// slot: index of the class of ranks that holds it.
struct PlanWeight {
  std::string name;
  std::vector<LocalParameter> tiles;
  std::vector<std::int64_t> first;  // for each tile, index of its first element in the chunk's flat buffers
  std::uint32_t state = kNone, slot = 0;

  bool is_vector() const { return tiles.front().in == 1; }
};

// Weights that several layers have alike, such as those of attention, an MLP or experts, or the weights of a part of
// the model outside the layers.
struct WeightKind {
  std::string title = "";
  bool vision = false;                    // whether the weights belong to the vision encoder
  std::vector<std::int32_t> layers = {};  // numbers of the layers (or prediction modules) with such weights; else empty
  std::int64_t count = 0;                 // number of layers, or of blocks outside layers, with such weights
  std::vector<PlanWeight> weights = {};   // the weights of one such layer or block, the first
};

// Returns the types of weights of a model, in the order of the model's layers. Each weight is listed once: of every
// pipeline stage only the first class of ranks (ranks that do the same) counts.
std::vector<WeightKind> weight_kinds(const Spec& spec, const Plan& plan);

}  // namespace orrery
