#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// The rows on which an activation function is computed. again: whether the function is computed a second time in
// backward, instead of its result being kept.
struct Activated {
  Id x;
  TokenRows rows;
  std::int64_t width;  // columns of the result; a gated function reads twice as many
  bool again;
  std::optional<Id> weights;  // buffer with a factor for each row: the router's weight
  bool within = false;        // whether the products' own kernels compute it
};

// Records the activation function of the rows, and before it the clamp of what it reads, if the model has one.
Id activate(LayerTape& layer, const std::string& name, const Activated& a);
// Records two products with an activation between them: an MLP, or shared experts.
Id feed_forward(LayerTape& layer, const std::string& name, const std::string& weights, Id x, std::int64_t width,
                bool reduce);
// Records the MLP of a layer; reduce: whether its result is summed over the tensor group.
Id mlp(LayerTape& layer, Id x, bool reduce);
// Records the experts that all tokens pass, with their gate if the model has one.
Id shared_experts(LayerTape& layer, Id x);

}  // namespace orrery
