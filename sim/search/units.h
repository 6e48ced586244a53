#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Times in a step for gathering weights and reducing gradients of a stage's units (FSDP units, or layers under ZeRO-3).
//   reduce, gather   time of the reductions alone, and of the gathers alone
//   links            time that both need on the link that they share
//   before, after    time of gathers before the first compute, and of reductions after the last compute
//   pressure         how much longer kernels take beside both a reduction and a gather, as a share of their time alone
//   least_pressure   how much longer kernels take beside the one of the two that slows them less
struct UnitTimes {
  Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
  double pressure = 0, least_pressure = 0;
};

// Computes the UnitTimes of one stage. gathered: number of layers whose weights are gathered already. Returns zeros
// where gradients are not reduced unit by unit (a unit: an FSDP unit, or a layer under ZeRO-3).
UnitTimes unit_times(BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                     std::int64_t gathered = 0);

// A lower bound of the time of a stage whose weights are gathered and gradients reduced layer by layer (FSDP, ZeRO-3):
//   work + B P / (1 + P) + (M - B) p / (1 + p) - hidden + idle time that remains
// M is the time in which at least one of the transfers runs, B the time in which a gather and a reduction both run (as
// short as the links that they share allow), P the pressure of both together and p the least pressure of one. Beside a
// transfer of pressure p (timing.h) kernels lose p / (1 + p) of the time. hidden: the part of that loss that need not
// arise, since transfers may run while the rank waits for its own other transfers (free_overlap) or is idle.
Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds free_overlap, Picoseconds idle);

}  // namespace orrery
