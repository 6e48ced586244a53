#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The input of an activation function. again: the function is recomputed in backward.
struct Activated {
  Id x;
  TokenRows rows;
  std::int64_t width;
  bool again;
  std::optional<Id> weights;  // one number for each row
};

// Sum over the tensor group: all-reduce, or reduce-scatter to local_rows under sequence parallelism.
Id reduce_from_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t row_count, std::int64_t columns);
// A norm of the residual stream, or of rows with so many columns.
Id norm(LayerTape& layer, const std::string& name, Id x);
Id norm(LayerTape& layer, const std::string& name, Id x, std::int64_t columns);
// The weights of a norm: the factors, and LayerNorm's bias, where the model has them. partial: as in LocalParameter.
std::vector<std::int32_t> norm_weights(LayerTape& layer, const std::string& name, std::int64_t columns, bool partial);
// The norm of a branch's input; returns x itself in models without pre_norms.
Id pre_norm(LayerTape& layer, const std::string& name, Id x);
// Gemma's norm of a branch before it is added to the residual stream; returns x itself in models without post_norms.
Id post_norm(LayerTape& layer, const std::string& name, Id x);
Id sum(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count);
// Joins (rows, first) and (rows, second) side by side.
Id join(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
        std::int64_t second);
// branch: the sum of the outputs of row-parallel products; the biases of those named are added here, once and not per
// tensor rank.
Id residual(LayerTape& layer, const std::string& name, Id x, Id branch, const std::vector<std::string>& biased);
Id dropout(LayerTape& layer, const std::string& name, Id x);
// Multiplies x in place.
void scale(LayerTape& layer, const std::string& name, Id x, double factor);
// Caps x in place; a cap of 0 changes nothing.
void soft_cap(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, double cap, bool fused);
// Adds learned positions; in models without them returns x itself.
Id add_positions(LayerTape& layer, Id x);
// Backward of an embedding lookup: adds rows to the table's gradient; if the stack's autograd makes a dense gradient,
// into a fresh one, which is then added. first: no other op has written the table's gradient in this micro-batch.
void table_gradient(LayerTape& layer, const std::string& name, Embedding work, const std::vector<Id>& reads,
                    std::int32_t table, bool first);
Id activate(LayerTape& layer, const std::string& name, const Activated& a);
// Two products with an activation between them: an MLP, or shared experts.
Id feed_forward(LayerTape& layer, const std::string& name, const std::string& weights, Id x, std::int64_t width,
                bool reduce);
Id mlp(LayerTape& layer, Id x, bool reduce);
// Copies tokens to the device; DataParallel's rank 0 copies those of all ranks.
void take_tokens(LayerTape& layer, Id tokens);

}  // namespace orrery
