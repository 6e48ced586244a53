#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A weight of the plan: its name without the layer's number, and its place in the flat buffers of the chunk with state
// frame `state`, of which `slot` is the class of ranks. A weight that is cut into tiles has one LocalParameter for each
// tile; other weights have one.
struct PlanWeight {
  std::string name;
  std::vector<LocalParameter> tiles;
  std::vector<std::int64_t> first;  // for each tile, index of its first element in the chunk's flat buffers
  std::uint32_t state = kNone, slot = 0;

  bool is_vector() const { return tiles.front().in == 1; }
};

// Weights of one kind that several layers have: attention, an MLP, experts, or a part of the model outside the layers.
struct WeightKind {
  std::string title = "";
  bool vision = false;                    // whether the weights belong to the vision encoder
  std::vector<std::int32_t> layers = {};  // numbers of the layers, or of prediction modules; empty outside layers
  std::int64_t count = 0;                 // number of layers, or of blocks outside layers, with such weights
  std::vector<PlanWeight> weights = {};   // the weights of the first of them
};

// Returns the kinds of weights of a model, in the order of the model's layers: of every stage the weights of its first
// class of ranks, once each.
std::vector<WeightKind> weight_kinds(const Spec& spec, const Plan& plan);

}  // namespace orrery
