#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Times in a step for gathering weights and reducing gradients of a stage's units (FSDP units, or layers under ZeRO-3).
//   reduce, gather:  time of all reductions alone, and of all gathers alone
//   links:           time for which both together need the full bandwidth of the busier link (NIC or NVLink)
//   before, after:   time of gathers before the first compute, and of reductions after the last compute
//   pressure:        how much longer kernels take beside both a reduction and a gather, as a share of their time alone
//   least_pressure:  the same share beside only the one of the two that slows kernels less
struct UnitTimes {
  Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
  double pressure = 0, least_pressure = 0;
};

// Computes the UnitTimes of one stage. gathered: number of layers whose weights are gathered already. Returns zeros
// where gradients are not reduced unit by unit (a unit: an FSDP unit, or a layer under ZeRO-3).
UnitTimes unit_times(BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                     std::int64_t gathered = 0);

// A lower bound of the time of a stage whose weights are gathered and gradients reduced layer by layer (FSDP, ZeRO-3):
//   work + B P / (1 + P) + (M - B) p / (1 + p) - hidden + idle / (1 + P)
// M is the time in which a gather or a reduction runs, B the part of it in which both run (as short as the links that
// they share allow). Transfers of pressure p (timing.h) make kernels lose p / (1 + p) of the time in which they run; P
// is the pressure of a gather and a reduction together, p the lesser one of the two alone. hidden: the loss that is
// avoided while kernels wait for the rank's other transfers anyway (free_overlap). Transfers in the idle time avoid at
// most idle P / (1 + P) of the loss, so that idle / (1 + P) is added.
Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds free_overlap, Picoseconds idle);

}  // namespace orrery
