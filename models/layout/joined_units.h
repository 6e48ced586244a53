#pragma once

#include <cstddef>
#include <vector>

#include "models/layout/draft.h"

namespace orrery {

// Returns for each sharding unit (weights that are gathered together, as in FSDP) the indices of the blocks whose
// weights form it, in the order in which units lie in the chunk's flat buffers. Each block that owns its weights is in
// one unit: alone, or joined with others as strategy.units says. A unit never spans two chunks, because no stage
// gathers weights for another.
std::vector<std::vector<std::size_t>> unit_members(const Draft& draft, const Chunk& chunk);

}  // namespace orrery
