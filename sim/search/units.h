#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Times of the transfers of a stage's units (FSDP units, layers under ZeRO-3) in a step. reduce, gather: time of the
// reductions of gradients, and of the gathers of weights, alone; links: time that both need on the link that they
// share; before: time of gathers before the first compute; after: time of reductions after the last compute. pressure:
// added time of kernels beside both a reduction and a gather, as a share of their time alone; least_pressure: the same
// beside the one that slows kernels less.
struct UnitTimes {
  Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
  double pressure = 0, least_pressure = 0;
};

// Times of the transfers of a stage's units (FSDP units, layers under ZeRO-3): reductions of gradients, and gathers of
// weights before forward and backward. gathered: number of layers whose weights are gathered already. Zeros where
// gradients are not reduced unit by unit.
UnitTimes unit_times(BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                     std::int64_t gathered = 0);

// Time of a stage whose weights are gathered and gradients reduced layer by layer (FSDP, ZeRO-3): work, the time that
// kernels lose to these transfers, and idle time. Beside a transfer of pressure p (timing.h) kernels lose p / (1 + p)
// of their time. A gather and a reduction overlap no longer than the link that they share allows. With M the time in
// which at least one transfer moves, B the time in which both move, P the pressure of both together and p the least
// pressure of one:
//   work + B P / (1 + P) + (M - B) p / (1 + p) - time hidden where no kernels run.
// A part of the gathers and reductions may hide in idle time and beside the rank's other transfers (hides), which are
// counted in the work; the rest slows kernels, least where gathers and reductions overlap as little as the links allow.
Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds hides, Picoseconds idle);

}  // namespace orrery
