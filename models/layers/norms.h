#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

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
// Records a norm of any number of rows, such as the heads of all tokens, with `columns` columns each; without
// `weighted` the norm multiplies by no weights. after_sum: whether a generated text's all-reduce before it does it
// (Software::Communication::all_reduce_norms).
Id norm_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns, bool weighted,
             bool after_sum = false);

}  // namespace orrery
