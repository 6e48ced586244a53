#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Times of the transfers of a stage's units (FSDP units, layers under ZeRO-3) in a step. reduce, gather: reductions of
// gradients and gathers of weights alone; links: both together, on the link that they share; before: the gathers before
// the first compute; after: the reductions after the last compute. pressure: slowdown of kernels by both at once;
// least_pressure: by the lesser of the two.
struct UnitTimes {
  Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
  double pressure = 0, least_pressure = 0;
};

// Times of the transfers of a stage's units (FSDP units, layers under ZeRO-3): sums of gradients, and gathers of
// weights before forward and backward. gathered: number of layers whose weights are gathered already. Zeros where
// gradients are not reduced unit by unit.
UnitTimes unit_times(BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                     std::int64_t gathered = 0);

// Time of a stage whose weights are gathered and gradients reduced layer by layer (FSDP, ZeRO-3): work, the time that
// kernels lose to these transfers, and idle time. Beside a transfer of pressure p (timing.h) kernels lose p / (1 + p)
// of their time. A gather and a reduction overlap no longer than the link that they share allows. With M the time in
// which at least one transfer moves, and B the time in which both move, of pressure P together:
//   work + B P / (1 + P) + (M - B) p / (1 + p) - time hidden where no kernels run.
// A part of the transfers may hide beside the rank's own transfers (hides), which are in the work, and in idle time;
// the others slow kernels, least where transfers overlap as little as the links allow.
Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds hides, Picoseconds idle);

}  // namespace orrery
