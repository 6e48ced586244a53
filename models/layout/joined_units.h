#pragma once

#include <cstddef>
#include <vector>

#include "models/layout/draft.h"

namespace orrery {

// The entries of a chunk whose weights form a unit together, unit after unit in the order in which they lie in the
// chunk's flat buffers. Each entry that owns its weights is in one unit: alone, or as strategy.units joins them. Units
// end with the chunk: no stage gathers for another.
std::vector<std::vector<std::size_t>> unit_members(const Draft& draft, const Chunk& chunk);

}  // namespace orrery
