#pragma once

#include "models/layout/draft.h"

// Stages that several ranks run together, each on its own samples of every micro-batch (DAPPLE, Fan et al. 2021,
// arXiv:2007.01045: a stage is replicated where that balances the pipeline, and micro-batches are cut and put together
// again between stages of unlike replicas).

namespace orrery {

// Enters a replica of a stage: from now on blocks and groups are those of its ranks.
void enter(Draft& draft, std::int64_t stage, std::int64_t replica);
// Slices of rows that cross the boundary after a virtual stage, at the end that is being built: one for every rank of
// the other stage that has rows of this rank, in the order of those ranks. A stage's ranks have equally many rows of a
// micro-batch, one rank after the other: replica by replica, and within one the tensor ranks where sequences are cut
// over those.
std::vector<Slice> slices_over(const Draft& draft, std::size_t boundary, bool upstream);
// Whether this stage and one of another number of ranks hold the embedding table: all ranks of both reduce its gradient
// together, once a step, and cut its states.
bool shares_table_unlike(const Draft& draft);

}  // namespace orrery
