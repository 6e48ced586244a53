#pragma once

#include <cstdint>
#include <string>

#include "models/layers/block_builder.h"
#include "models/layers/blocks.h"

namespace orrery {

using Id = BlockBuilder::Id;  // a slot of the block

// The layer that is being recorded: the tape, and the layer's sizes on one rank. The parts of a layer are functions
// that record forward ops with their backward; each takes and returns buffers of the block. Under sequence parallelism
// buffers of norms and residuals hold `local_rows` rows, all other buffers `rows`.
struct LayerTape {
  LayerTape(const BlockContext& context, const std::string& name, BlockRole role);

  BlockBuilder tape;
  Recompute recompute;  // recomputation of this block
  const BlockContext& context;
  const Model& model;
  std::int64_t heads, kv_heads;  // heads of this rank
  bool eight_bit;                // whether products of layers take 8 bits; those of the output stay in 16 bits
  // Whether weights of the output have a dummy gradient: Transformer Engine's layers share theirs
  bool dummy_gradients;
  bool overlaps;       // products of layers overlap with transfers of the tensor group
  std::int64_t tiles;  // number of tiles that each weight of a layer is cut into
};

// The number of rows of tokens on their way through experts, as predicted, and the runtime size that counts them (-1:
// none).
struct TokenRows {
  std::int64_t count = 0;
  std::int32_t size = -1;
};

// A new buffer for activations.
Id activation(LayerTape& layer, const std::string& name, std::int64_t row_count, std::int64_t columns);
// Sums x over the tensor group, or takes the maximum.
void tensor_all_reduce(LayerTape& layer, const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum = false);
// A weight or bias with as many elements as the residual stream has columns; every rank has the part for its columns.
std::int32_t vector_parameter(LayerTape& layer, const std::string& name);
void bias_gradient(LayerTape& layer, const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                   std::int32_t parameter);
// A new buffer with so many columns for each row of tokens.
Id rows_of(LayerTape& layer, const std::string& name, const TokenRows& rows, std::int64_t columns, Bytes width);

}  // namespace orrery
