#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The input of an activation function. again: the function runs again in backward.
struct Activated {
  Id x;
  TokenRows rows;
  std::int64_t width;
  bool again;
  std::optional<Id> weights;  // one number for each row
};

// Sum over the tensor group: all-reduce, or reduce-scatter to local_rows under sequence parallelism.
Id reduce_from_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t row_count, std::int64_t columns);
// A norm of the residual stream, or of so many columns.
Id norm(LayerTape& layer, const std::string& name, Id x);
Id norm(LayerTape& layer, const std::string& name, Id x, std::int64_t columns);
// Gemma's norm before the residual; without post_norms x itself.
Id post_norm(LayerTape& layer, const std::string& name, Id x);
Id sum(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count);
// Joins (rows, first) and (rows, second) side by side.
Id join(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
        std::int64_t second);
// branch: the output of the row-parallel products before it; each adds its bias here, once and not per tensor rank.
Id residual(LayerTape& layer, const std::string& name, Id x, Id branch, const std::vector<std::string>& products);
Id dropout(LayerTape& layer, const std::string& name, Id x);
// Multiplies x in place.
void scale(LayerTape& layer, const std::string& name, Id x, double factor);
// Caps x in place; a cap of 0 changes nothing.
void soft_cap(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, double cap, bool fused);
// Adds learned positions; without them x itself.
Id add_positions(LayerTape& layer, Id x);
// Backward of a lookup: rows are added to the table's gradient; where the stack's autograd makes a dense gradient,
// into a fresh one, which is then added. first: no other op has written the table's gradient in this micro-batch.
void table_gradient(LayerTape& layer, const std::string& name, Embedding work, const std::vector<Id>& reads,
                    std::int32_t table, bool first);
Id activate(LayerTape& layer, const std::string& name, const Activated& a);
// Two products with an activation between: of an MLP, or of shared experts.
Id feed_forward(LayerTape& layer, const std::string& name, const std::string& weights, Id x, std::int64_t width,
                bool reduce);
Id mlp(LayerTape& layer, Id x, bool reduce);
// Loads tokens; DataParallel's rank 0 loads those of all ranks.
void take_tokens(LayerTape& layer, Id tokens);

}  // namespace orrery
