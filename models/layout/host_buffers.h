#pragma once

#include "models/layout/draft.h"

// These functions add to a plan the buffers of weights, gradients and optimizer states that lie on the host or on disks
// (ZeRO-Offload, Ren et al. 2021, 2101.06840; ZeRO-Infinity, Rajbhandari et al. 2021, 2104.07857).

namespace orrery {

// Adds to the block of a sharding unit (as in FSDP) the buffers through which the unit's weights and gradients pass
// between device and host. shard: number of elements of this rank's shard.
void add_staging(const Draft& draft, Block& unit, std::int64_t shard);
// Sets the memory tier of each state buffer of a chunk, and adds the host's gradients. own: number of elements whose
// optimizer states the rank keeps.
void place_on_host(const Draft& draft, Block& state, std::int64_t own);
// Adds the host buffers (tiles) in which an optimizer on the host updates pieces of the states. Two tiles of updated
// weights are in use at a time (DeepSpeed's CPU Adam: _doubled_buffer); with an optimizer on disks there are three
// tiles: one is read from disk, one updated and one written back. With a delayed update there is a tile for every piece
// of the states, because all updated weights wait until the step has ended.
void add_tiles(Draft& draft, Chunk& chunk);

}  // namespace orrery
