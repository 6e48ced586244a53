#pragma once

#include "models/layout/draft.h"

namespace orrery {

// An embedding table that two stages hold is sharded by itself, so that a rank of either stage owns the same part of
// it; other weights of its block (learned positions, the layer of a multi-token prediction) are in other regions.
bool cut_alike(const Draft& draft, const Block& block);
// The ranks that hold the same copy of a weight, over which its gradient is reduced and its states are cut.
Dimension copies_of(const Draft& draft, const LocalParameter& p);
// Number of elements whose optimizer states one rank keeps: shards of units if parameters are sharded, else shards of
// buckets.
std::int64_t own_elements(const Draft& draft, const Chunk& chunk);
// Whether an entry (of multi-token prediction) reads the embedding table that the embedding on this stage has gathered.
bool lends_table(const Draft& draft, const Entry& entry);
// Whether a gathered unit arrives in a separate buffer and is copied out into its weights. Tiles are gathered directly
// into their tensors.
bool copies_out(const Draft& draft, const Regions& regions);
// Whether a unit's gradients are joined in one buffer. FSDP1's flat parameter is split into weights: autograd joins
// their gradients again (split_with_sizes_backward). FSDP2 copies the gradients side by side for the ranks
// (_fsdp_collectives.py, foreach_reduce_scatter_copy_in), and in the same pass widens them if they are reduced in more
// bits.
bool joins_gradients(const Draft& draft, const Regions& regions);
// Places each block's weights in the chunk's flat buffers, and adds a unit frame for each block.
void place_weights(Draft& draft, Chunk& chunk);

}  // namespace orrery
