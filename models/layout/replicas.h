#pragma once

#include "models/layout/draft.h"

// This header is for pipeline stages that several ranks run together, each on its own samples of every micro-batch
// (DAPPLE, Fan et al. 2021, arXiv:2007.01045: a stage is replicated if that balances the pipeline, and micro-batches
// are split and concatenated between stages with different numbers of replicas).

namespace orrery {

// Selects one replica of a pipeline stage: blocks and groups that are built after this call belong to its ranks.
void enter(Draft& draft, std::int64_t stage, std::int64_t replica);
// Returns the slices of a micro-batch's rows that cross the boundary after a virtual stage, as seen from the stage that
// is being built: one slice for every rank of the other stage that has some of this rank's rows, in the order of ranks.
// upstream: this stage is before the boundary. The ranks of a stage hold equal contiguous ranges of a micro-batch's
// rows, ordered by replica, and within a replica by tensor rank if sequences are cut over the tensor ranks.
std::vector<Slice> slices_over(const Draft& draft, std::size_t boundary, bool upstream);
// Returns whether this stage and a stage with a different number of ranks both hold the embedding table. All ranks of
// both stages then reduce the table's gradient together, once a step, and shard the table's optimizer states.
bool shares_table_unlike(const Draft& draft);

}  // namespace orrery
