#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// Records a sum over the tensor group: an all-reduce, or a reduce-scatter to local_rows under sequence parallelism.
Id reduce_from_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t row_count, std::int64_t columns);
Id sum(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count);
// Records the concatenation of (rows, first) and (rows, second) into (rows, first + second).
Id join(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
        std::int64_t second);
// Records the addition of a branch (the output of attention or of an MLP) to the residual stream x. Without x, as in
// hyper-connections, which combine streams and branch themselves, the result is the branch with its biases and dropout.
// branch: the output of a row-parallel product, summed over tensor ranks. biased: names of the products whose biases
// are added here, after the sum over tensor ranks, so that each bias is added once. until: buffers that are freed only
// after the addition.
Id residual(LayerTape& layer, const std::string& name, std::optional<Id> x, Id branch,
            const std::vector<std::string>& biased, const std::vector<Id>& until = {});
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
