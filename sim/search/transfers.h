#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Times of transfers between stages and among replicas; NCCL is never faster than these.

const NcclModel& model_of(BoundCache& cache, const std::vector<int>& spread);

// The ranks that share gradients and shards of states. If two copies of the model run (Chimera, DualPipe), the ranks of
// two stages that mirror each other are one such group.
ReplicaGroup& replicas_of(BoundCache& cache, const SearchCell& cell, const Strides& at);

// Least time in which the ranks of a group transfer this number of bytes, in one or more pieces.
Picoseconds transfer_time(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// The cost of transferring one layer's weights or gradients in one piece, with the exact time that the transfer takes
// when the rank does nothing else meanwhile.
MovedUnit unit_of_layer(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// boundaries: for each virtual stage, the time to send to the next one. before: for each stage, the sum of the send
// times before the stage's first virtual stage.
struct Hops {
  std::vector<Picoseconds> boundaries, before;
};
Hops hops_of(LayoutCosts& costs, const CellWork& work, const Strides& at);

}  // namespace orrery
