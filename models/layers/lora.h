#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"

namespace orrery {

// Low-rank adapters beside linear layers (LoRA): y += (x A^T) B^T. An adapter needs no collective of its own over the
// tensor group. Beside a column-parallel weight every rank has all of A, and the adapter's dx = dh A is added to a
// partial sum that the layer reduces anyway. Beside a row-parallel weight every rank has all of B, and the adapter's y
// is added to a partial sum that the layer reduces too. For the matrix that every rank has, each rank computes a part
// of the gradient; these parts are summed over the tensor group together with the gradients of norms.
struct Adapter {
  std::string name;
  std::int64_t rows = 0, in = 0, out = 0;  // sizes of the adapted weight on this rank
  std::int64_t lora_rank = 0;              // the adapter's rank: columns of its intermediate result
  std::int32_t a = -1, b = -1;             // indices of the parameters A and B in the block
  Id hidden{};                             // buffer of the intermediate result x A^T
};

// Adds the two weights of the adapter beside the linear layer with weight `weight`; returns nothing if this layer has
// no adapter. cut and kv_rows are those of the layer's weight.
std::optional<Adapter> adapter_of(LayerTape& layer, const std::string& name, const std::string& weight, std::int64_t in,
                                  std::int64_t out, Cut cut, std::int64_t kv_rows);
// Records the adapter's forward pass, which adds (x A^T) B^T to y.
void adapt(LayerTape& layer, const Adapter& adapter, Id x, Id y);
// Records the adapter's backward pass, in this order: dh = dy B; dx += dh A; the gradients of A and B.
Id hidden_gradient(LayerTape& layer, const Adapter& adapter, Id dy);
void adapt_input_gradient(LayerTape& layer, const Adapter& adapter, Id dh, Id dx);
void adapter_gradients(LayerTape& layer, const Adapter& adapter, Id x, Id dy, Id dh);

}  // namespace orrery
