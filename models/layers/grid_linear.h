#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"

namespace orrery {

// y = x W^T in blocks; from, to: how the columns of x and of y are cut.
Id grid_linear(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
               const ColumnWeight& weight, const Side& from, const Side& to);
// Logits. The table's blocks (vocabulary, hidden) lie as they are, so that an output tied to the embedding multiplies
// by the transposed matrix (Optimus, algorithm 2): x stays, and the logits' parts are reduced.
Id grid_logits(LayerTape& layer, const std::string& name, Id x, const std::string& table);
// Rows of the embedding table by token.
Id grid_embedding(LayerTape& layer, const std::string& name, const std::string& table);
// A norm of rows that lie in pieces on the ranks that have their columns: moments are summed over these ranks (Optimus,
// section 3.2.2).
Id grid_norm(LayerTape& layer, const std::string& name, Id x);

}  // namespace orrery
