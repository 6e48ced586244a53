#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Transfers between stages and among replicas, no slower than NCCL makes them.

const NcclModel& model_of(BoundCache& cache, const std::vector<int>& spread);

// The group of ranks that share gradients and shards. Where two copies of the model run, stages that mirror each other
// are in one group, and no bound is given for it.
ReplicaGroup& replicas_of(BoundCache& cache, const SearchCell& cell, const Strides& at);

// Least time in which the group moves so many bytes, in whatever pieces.
Picoseconds transfer_time(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// The transfer of a layer's unit, which moves in one piece: the exact time when nothing runs beside it.
MovedUnit unit_of_layer(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// Send times between every virtual stage and the next, and their sums before the first virtual stage of every stage.
struct Hops {
  std::vector<Picoseconds> boundaries, before;
};
Hops hops_of(LayoutCosts& costs, const CellWork& work, const Strides& at);

}  // namespace orrery
