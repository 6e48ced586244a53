#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The weight of a linear layer. kv_rows: number of the weight's last rows that belong to key/value heads which several
// tensor ranks hold.
struct ColumnWeight {
  std::string name;
  Cut cut = Cut::rows;
  bool bias = false;
  std::int64_t kv_rows = 0;
  // whether the layer's products stay in 16 bits while those of other layers read 8-bit operands
  bool wide = false;
  bool fp32 = false;                   // whether the layer's product is in fp32 where a text is generated
  Dimension over = Dimension::tensor;  // the group of ranks over which the weight is cut
  // whether the layer's backward computes the input gradient; if not, another op computes it, or none is needed
  bool input_gradient = true;
  std::vector<std::int64_t> sections = {};  // rows on this rank of each matrix packed in the weight
  // number of rows of the input x in replicated(), 0: the rank's local rows; other functions ignore this field
  std::int64_t rows = 0;
  // outputs on this rank of the linear layers that the weight consists of, if each has a product of its own; the second
  // and later ones are equal
  std::vector<std::int64_t> apart = {};
};

// These functions record the products of a linear layer on the layer's tape, one for each tile: with
// strategy.offload.tiling a weight is cut into tiles, which are gathered and freed one after the other.
// product: y = x W^T; input_gradients: dx = dy W; weight_gradients: dW += dy^T x.
void product(LayerTape& layer, const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id y,
             const std::vector<std::int32_t>& weights, std::int32_t bias);
void input_gradients(LayerTape& layer, const std::string& name, const Gemm& forward, const std::vector<Id>& reads,
                     Id dx, const std::vector<std::int32_t>& weights);
void weight_gradients(LayerTape& layer, const std::string& name, const Gemm& forward, Id x, Id dy,
                      const std::vector<std::int32_t>& weights);
// Records y = x W^T with W cut by its outputs (column parallelism of Megatron); out is the number of outputs on this
// rank. Under sequence parallelism x is all-gathered first; backward reduces dx over the tensor group while the weight
// gradient runs.
Id column_parallel(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
                   const ColumnWeight& weight);
// Records y = x W^T on this rank's local rows, with the uncut W on every rank and no communication.
Id replicated(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
              const ColumnWeight& weight);
// Records an all-gather of the local rows of all tensor ranks; backward sums the gradients that each rank's heads
// contribute to these rows.
Id gather_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t columns);
// Records y = x W^T with W cut by its inputs (row parallelism of Megatron). y is a partial sum, which is reduced over
// the tensor group if `reduce`. casts_again: if products read 8-bit operands, backward casts x again.
Id row_parallel(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
                const std::string& weight, bool reduce, bool casts_again = false);

}  // namespace orrery
