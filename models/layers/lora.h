#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"

namespace orrery {

// Low-rank adapters beside linear layers (LoRA): y += (x A^T) B^T. Neither forward nor backward needs a transfer of its
// own over the tensor group. Beside a weight cut by columns of the model's matrix every rank has all of A, and dx = dh
// A is a part of the sum that the layer reduces anyway. Beside a weight cut by rows every rank has all of B, and y is a
// part of such a sum. A matrix that all ranks have gets a part of its gradient on each rank; these parts are summed
// together with those of the norms.
struct Adapter {
  std::string name;
  std::int64_t rows = 0, in = 0, out = 0, rank = 0;  // rows and columns on this rank; the adapter's rank
  std::int32_t a = -1, b = -1;                       // parameter indices of A and B
  Id hidden{};                                       // x A^T
};

// Adds the two weights of the adapter of the linear layer whose weight has this name; returns none if the layer has no
// adapter. cut and kv_rows are those of the layer's weight.
std::optional<Adapter> adapter_of(LayerTape& layer, const std::string& name, const std::string& weight, std::int64_t in,
                                  std::int64_t out, Cut cut, std::int64_t kv_rows);
// Records the adapter's forward pass, which adds (x A^T) B^T to y.
void adapt(LayerTape& layer, const Adapter& adapter, Id x, Id y);
// Records the adapter's backward pass, in this order: dh = dy B; dx += dh A; the gradients of A and B.
Id hidden_gradient(LayerTape& layer, const Adapter& adapter, Id dy);
void adapt_input_gradient(LayerTape& layer, const Adapter& adapter, Id dh, Id dx);
void adapter_gradients(LayerTape& layer, const Adapter& adapter, Id x, Id dy, Id dh);

}  // namespace orrery
