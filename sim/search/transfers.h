#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// This header has lower bounds of the times of transfers between stages and among replicas, which NCCL never undercuts.

const NcclModel& model_of(BoundCache& cache, const std::vector<int>& spread);

// The ranks that share gradients and shards of states. If the pipeline runs two copies of the model (Chimera,
// DualPipe), the ranks of a stage and of its mirror stage form one such group.
ReplicaGroup& replicas_of(BoundCache& cache, const SearchCell& cell, const Strides& at);

// Least time in which a group of ranks does this collective on this number of bytes, in one or more pieces.
Picoseconds transfer_time(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// The cost of transferring one layer's weights or gradients in one piece. The time is exact for a rank that does
// nothing else meanwhile.
MovedUnit unit_of_layer(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes);

// Times to send one micro-batch between stages. boundaries: for each virtual stage, the time to send to the next one;
// before: for each pipeline stage, the sum of the times of all sends ahead of its first virtual stage.
struct Hops {
  std::vector<Picoseconds> boundaries, before;
};
Hops hops_of(LayoutCosts& costs, const CellWork& work, const Strides& at);

}  // namespace orrery
