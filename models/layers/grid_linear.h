#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"

namespace orrery {

// Records y = x W^T on a grid of tensor ranks. from, to: how the columns of x and of y are cut over the grid.
Id grid_linear(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
               const ColumnWeight& weight, const Side& from, const Side& to);
// Records logits on a grid of tensor ranks. The blocks of the output matrix (vocabulary, hidden) lie on the same ranks
// as those of the embedding table, so that a tied output multiplies by the table's transpose (Optimus, algorithm 2): x
// is not communicated, and partial logits are reduced.
Id grid_logits(LayerTape& layer, const std::string& name, Id x, const std::string& table);
// Looks up rows of the embedding table by token, on a grid of tensor ranks.
Id grid_embedding(LayerTape& layer, const std::string& name, const std::string& table);
// Records a norm of rows whose columns are cut over several ranks: the sums from which mean and variance follow are
// all-reduced over these ranks (Optimus, section 3.2.2).
Id grid_norm(LayerTape& layer, const std::string& name, Id x);

}  // namespace orrery
