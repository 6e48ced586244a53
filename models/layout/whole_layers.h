#pragma once

#include "models/layout/draft.h"

namespace orrery {

// This header computes what optimizers that work on complete layers or tensors (Muon, Adafactor) need of the layout.

// Returns whether the data-parallel ranks hold shards of the optimizer states and exchange their shards of each layer,
// so that one of them gets the complete layer (Muon).
bool shares_layers(const Draft& draft);

// Returns the number of elements that one rank has of each layer with the shape of the block of `entry`: a shard,
// rounded up, or the complete layer.
std::int64_t share_of_layer(const Draft& draft, const Chunk& chunk, const Entry& entry);

// Returns the number of elements of a complete layer, as one rank gets it from all shards of the data-parallel group.
std::int64_t complete_layer(const Draft& draft, const Chunk& chunk, const Entry& entry);

// Returns the number of elements of the buffer in which Muon orthogonalizes layers, one layer on each data-parallel
// rank at a time: the layer, with several data-parallel ranks a second such area for what ranks send, and with tensor
// parallelism the parts of all tensor ranks.
std::int64_t whole_layer_elements(const Draft& draft, const Chunk& chunk);

// Returns how many of the elements whose optimizer states one rank keeps are not in layers' matrices, on the rank with
// most of them. Ranks of a group have one plan, so each bucket or region counts for the rank that owns most of it.
std::int64_t own_vectors(const Draft& draft, const Chunk& chunk);

// Returns the number of norms that Adafactor takes of a chunk's tensors: two of each.
std::int64_t tensor_norms(const Draft& draft, const Chunk& chunk);

}  // namespace orrery
