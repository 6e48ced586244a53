#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/layers/blocks.h"
#include "models/tape/block_builder.h"

namespace orrery {

using Id = BlockBuilder::Id;  // index of a buffer among the layer's buffers

// A layer whose ops are being recorded: its BlockBuilder (a tape of forward ops from which backward is derived, as in
// autograd) and its sizes on one rank. The functions that record the ops of attention, MLP and so on take and return
// indices of buffers. Under sequence parallelism buffers of norms and residuals hold `local_rows` rows, all other
// buffers `rows`.
struct LayerTape {
  LayerTape(const BlockContext& context, const std::string& name, BlockRole role);

  BlockBuilder tape;
  Recompute recompute;  // which parts of this block are recomputed in backward
  const BlockContext& context;
  const Model& model;
  std::int64_t heads, kv_heads;  // numbers of query heads and of key/value heads on this rank
  // whether the matrix products of this layer read 8-bit operands; false for the embedding and the output layer
  bool eight_bit;
  // Whether each use of the output layer's weight allocates a dummy gradient of its own (Transformer Engine's layers
  // share one)
  bool dummy_gradients;
  bool rounds;         // whether forward rounds weights and inputs of products (quantisation-aware training)
  bool overlaps;       // whether products of layers overlap with transfers of the tensor group
  std::int64_t tiles;  // number of tiles that each weight of a layer is cut into
  // in quantisation-aware training, the buffer of each weight that forward has rounded, which backward reads too
  std::map<std::int32_t, Id> rounded;
};

// Returns whether products of a part of a layer (experts or feed_forward) read 8-bit operands.
bool runs_eight_bit(const LayerTape& layer, QuantisedLayers part);

// While one exists, the products that are recorded run in strategy.precision, or in 16 bits if they are of a part of
// the layer that strategy.quantise.layers leaves out. It does nothing where all of a layer's run in strategy.precision.
class QuantisedProducts {
 public:
  QuantisedProducts(LayerTape& layer, QuantisedLayers part);
  ~QuantisedProducts();
  QuantisedProducts(const QuantisedProducts&) = delete;
  QuantisedProducts& operator=(const QuantisedProducts&) = delete;

 private:
  LayerTape& layer_;
  Precision precision_;
  bool eight_bit_;
};

// A number of rows of tokens that are routed to experts. count: the predicted number. size: the index in
// Block::runtime_sizes of the actual number, which the executor counts (-1: the number is fixed).
struct TokenRows {
  std::int64_t count = 0;
  std::int32_t size = -1;
};

// Adds a buffer for activations and returns its index.
Id activation(LayerTape& layer, const std::string& name, std::int64_t row_count, std::int64_t columns);
// Records an all-reduce of x over the tensor group in place: the sum, or the largest value.
void tensor_all_reduce(LayerTape& layer, const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum = false);
// Records an all-gather or a reduce-scatter (`kind`) of the rows of `from` over the tensor group into `to`. If `parts`
// is more than 1, the collective moves piece number `piece` of that many equal parts. A whole collective is copied to
// or from a buffer of its own where the stack does (software.sequence_copies).
void tensor_collective(LayerTape& layer, const std::string& name, CollectiveKind kind, Id from, Id to,
                       std::int64_t columns, Bytes width, std::int64_t piece = 0, std::int64_t parts = 1);
// Adds a linear layer's weight as tiles (ranges of its rows), which products use one after another, or as one tile, and
// returns them. apart: the outputs of the layers whose weights lie in it, if these have products of their own; a tile
// has an equal part of each. Throws Error if the tiles do not divide the outputs.
std::vector<std::int32_t> tiled_weight(LayerTape& layer, const std::string& name, std::int64_t out, std::int64_t in,
                                       Cut cut, const std::vector<std::int64_t>& apart = {});
// Returns whether products that overlap with transfers do so through PyTorch's symmetric memory.
bool in_symmetric_memory(const LayerTape& layer);
// Adds a weight or bias with one element for each column of the residual stream; if a grid of tensor ranks cuts the
// columns, every rank has the elements of its own columns.
std::int32_t vector_parameter(LayerTape& layer, const std::string& name);
void bias_gradient(LayerTape& layer, const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                   std::int32_t parameter);
// Adds a buffer with `columns` elements of `width` bytes for each row of tokens.
Id rows_of(LayerTape& layer, const std::string& name, const TokenRows& rows, std::int64_t columns, Bytes width);

// Buffers of a product's fp8 input. rows: the input cast with its scale. columns: the same input transposed, if a
// product needs the other dimension innermost (Hopper's fp8 products take both operands with k innermost: Transformer
// Engine). Without fp8, and where products take operands of either layout (transposes_eight_bit), both are one buffer.
// kept: whether the weight gradient may read `columns`; if not, the input is cast again.
struct CastSlots {
  Id rows, columns;
  bool kept = false;
};

// Records the cast of a product's operand. within: whether the kernel that computes x casts it too. own_kernel: see
// Cast. With a scale for each row (software.rowwise_scales) rows and columns are cast one after the other.
CastSlots to_fp8(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, bool transpose,
                 bool within = false, bool own_kernel = false);
// Records the multiplication of the result of a backward product by the scales of its operands' rows, where these have
// scales of their own (software.rowwise_scales): these products are the kernels for one scale a tensor, without the
// scales (torchao float8_ops.py, addmm_float8_unwrapped: use_fast_accum is false in backward).
void rescale(LayerTape& layer, const std::string& name, Id x, std::int64_t elements);
// Returns the bytes of an element of a product's operands.
Bytes operand_width(const LayerTape& layer);
// Returns the fp8 input of a product, or in quantisation-aware training the rounded input. Backward's weight gradient
// needs this input transposed: the transposed input is kept, or the input is cast again.
CastSlots input_to_fp8(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns,
                       bool keep);
Id input_columns(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, const CastSlots& given);
// Returns the buffer of an 8-bit operand's transposed copy; in 16 bits, and where products take operands of either
// layout, the operand's own buffer.
Id transposed(LayerTape& layer, const std::string& name, Id x, std::int64_t elements);
// Returns the buffers that a product reads besides its weight parameter, and records casts of the weight that the
// product needs. Gathered weights are cast to fp8 before each use, other weights once a step (emit.cpp). Weights in NF4
// are dequantised before each use. In quantisation-aware training, forward rounds the weight (FakeQuantize), and
// backward reads what forward has rounded.
std::vector<Id> with_weight(LayerTape& layer, const std::string& name, Id x, std::int32_t weight, const Gemm& forward);

}  // namespace orrery
