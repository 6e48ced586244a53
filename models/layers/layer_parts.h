#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The rows on which an activation function is computed. again: whether the function is computed a second time in
// backward, instead of its result being kept.
struct Activated {
  Id x;
  TokenRows rows;
  std::int64_t width;
  bool again;
  std::optional<Id> weights;  // buffer with a factor for each row: the router's weight
  bool within = false;        // whether the products' own kernels compute it
};

// Records a sum over the tensor group: an all-reduce, or a reduce-scatter to local_rows under sequence parallelism.
Id reduce_from_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t row_count, std::int64_t columns);
// Records a norm of every row of x, with as many columns as the hidden states, or with `columns` columns.
Id norm(LayerTape& layer, const std::string& name, Id x);
Id norm(LayerTape& layer, const std::string& name, Id x, std::int64_t columns);
// Adds the weights of a norm to the block: the scale, and for LayerNorm the bias. partial: whether each tensor rank
// computes only a part of their gradients, which must then be summed over the tensor group.
std::vector<std::int32_t> norm_weights(LayerTape& layer, const std::string& name, std::int64_t columns, bool partial);
// Records the norm of a branch's input; returns x itself if the model has no norm before its branches (pre_norms).
Id pre_norm(LayerTape& layer, const std::string& name, Id x);
// Records the norm of a branch's output before it is added to the residual stream, as in Gemma; returns x itself if the
// model has no such norm (post_norms).
Id post_norm(LayerTape& layer, const std::string& name, Id x);
Id sum(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count);
// Records the concatenation of (rows, first) and (rows, second) into (rows, first + second).
Id join(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
        std::int64_t second);
// Records the addition of a branch (the output of attention or of an MLP) to the residual stream x. Without x, as in
// hyper-connections, which combine streams and branch themselves, the result is the branch with its biases and dropout.
// branch: the output of a row-parallel product, summed over tensor ranks. biased: names of the products whose biases
// are added here, after the sum over tensor ranks, so that each bias is added once.
Id residual(LayerTape& layer, const std::string& name, std::optional<Id> x, Id branch,
            const std::vector<std::string>& biased);
Id dropout(LayerTape& layer, const std::string& name, Id x);
// Records the multiplication of all elements of x by one number, in place.
void scale(LayerTape& layer, const std::string& name, Id x, double factor);
// Records x <- cap * tanh(x / cap), in place; a cap of 0 changes nothing.
void soft_cap(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, double cap, bool fused);
// Records the addition of learned position embeddings from a table of `length` rows; add_positions() returns x itself
// in models without them.
Id add_learned_positions(LayerTape& layer, Id x, std::int64_t length);
Id add_positions(LayerTape& layer, Id x);
// Records the backward op of an embedding lookup, which adds rows to the table's gradient. If the framework's autograd
// makes a dense gradient, that gradient is a new buffer, which is then added to the sum over micro-batches. first:
// whether no other op has written the table's gradient in this micro-batch.
void table_gradient(LayerTape& layer, const std::string& name, Embedding work, const std::vector<Id>& reads,
                    std::int32_t table, bool first);
Id activate(LayerTape& layer, const std::string& name, const Activated& a);
// Records two products with an activation between them: an MLP, or shared experts.
Id feed_forward(LayerTape& layer, const std::string& name, const std::string& weights, Id x, std::int64_t width,
                bool reduce);
Id mlp(LayerTape& layer, Id x, bool reduce);
// Records the experts that all tokens pass, with their gate if the model has one.
Id shared_experts(LayerTape& layer, Id x);
// Records a norm of any number of rows, such as the heads of all tokens, with `columns` columns each; without
// `weighted` the norm multiplies by no weights. after_sum: whether a generated text's all-reduce before it does it
// (Software::Communication::all_reduce_norms).
Id norm_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns, bool weighted,
             bool after_sum = false);

// Records the rotation (RoPE) of `columns` columns of each row in place; the columns belong to heads of `head_dim`
// rotated columns each.
void rotate_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns,
                 std::int64_t head_dim);

// A batch of `batch` products, such as one for each attention head: each multiplies `rows` input rows of its own by its
// own matrix (out, in). All matrices are stored as one weight. input_bytes, output_bytes: sizes of the complete input
// and output.
struct BatchedProduct {
  std::int64_t rows = 0, in = 0, out = 0, batch = 1;
  std::int32_t weight = 0;
  Bytes input_bytes = 0, output_bytes = 0;
};
Id batched_product(LayerTape& layer, const std::string& name, Id x, const BatchedProduct& product);

// Records the copy of a micro-batch's token ids from the host to the device; rank 0 of torch's DataParallel copies the
// tokens of all ranks.
void take_tokens(LayerTape& layer, Id tokens);

}  // namespace orrery
