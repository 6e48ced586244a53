#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Makes the blocks, weights and buffers of all chunks (virtual stages) of a pipeline stage. The chunk whose embedding
// table other chunks use is laid out first.
void lay_out(Draft& draft);

// Fills in the name of the class of ranks that Draft::at names, the number of its ranks, and the rank that represents
// the class. slot.stage must be set.
void find_ranks(const Draft& draft, RankClass& slot);

}  // namespace orrery
