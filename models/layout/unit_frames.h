#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Returns whether a block's first weight is an embedding table that two stages hold. The table is then sharded by
// itself, so that both stages cut it into the same parts; other weights of its block (learned positions, the layer of a
// multi-token prediction) are sharded separately.
bool cut_alike(const Draft& draft, const Block& block);
// Returns the dimension of the group of ranks that hold the same part of a weight; the weight's gradient is reduced
// over this group, and its optimizer states are sharded over it.
Dimension copies_of(const Draft& draft, const LocalParameter& p);
// Returns the number of a chunk's weight elements whose optimizer states one rank keeps: those in its shards of the
// sharding units (as in FSDP) if parameters are sharded, else those in its shards of the gradient buckets.
std::int64_t own_elements(const Draft& draft, const Chunk& chunk);
// Returns whether a block of multi-token prediction reads the embedding table that the embedding block on the same
// stage has gathered.
bool borrows_table(const Draft& draft, const Entry& entry);
// Returns whether a sharding unit (as in FSDP) is gathered into a separate buffer, from which its weights are then
// copied to their own tensors. Tiles of weights are gathered directly into their tensors.
bool copies_out(const Draft& draft, const Regions& regions);
// Returns whether the gradients of a sharding unit are joined in one buffer. FSDP1's flat parameter is split into
// weights: autograd joins the weights' gradients again (split_with_sizes_backward). FSDP2 copies the gradients into one
// buffer, ordered by rank (_fsdp_collectives.py, foreach_reduce_scatter_copy_in), and in the same pass casts them to
// the data type of the reduction.
bool joins_gradients(const Draft& draft, const Regions& regions);
// Assigns to each block's weights an offset in the chunk's flat buffers, and adds the buffers (a frame) of each
// sharding unit.
void place_weights(Draft& draft, Chunk& chunk);

}  // namespace orrery
