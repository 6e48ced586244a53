#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Times of transfers between stages and among replicas; NCCL is never faster than these.

const NcclModel& model_of(BoundCache& cache, const std::vector<int>& spread);

// The ranks that share gradients and shards of states. Where two copies of the model run (Chimera, DualPipe), stages
// that mirror each other share one group, and no bound is given for it.
ReplicaGroup& replicas_of(BoundCache& cache, const SearchCell& cell, const Strides& at);

// Least time in which the group's ranks transfer this many bytes, in whatever pieces.
Picoseconds transfer_time(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// The transfer of one layer's weights or gradients in one piece: the exact time when nothing runs beside it.
MovedUnit unit_of_layer(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// Send times from every virtual stage to the next (boundaries), and by stage the sum of the send times before the
// stage's first virtual stage (before).
struct Hops {
  std::vector<Picoseconds> boundaries, before;
};
Hops hops_of(LayoutCosts& costs, const CellWork& work, const Strides& at);

}  // namespace orrery
