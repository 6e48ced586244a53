#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Lower bounds of the step time of a cell (strategies with the same RankLayout and MemoryPlan). Before the first pass
// on pipeline stage s a micro-batch has passed through the stages before s (time head(s)), and after the last pass on
// stage s a gradient goes back through them (tail(s); Narayanan et al. 2021, section 2.2), so, with work(s) the compute
// time of one micro-batch on stage s,
//   step >= head(s) + micro-batches * work(s) + tail(s) + update.
// Under 1F1B, stage s of p stages keeps at most p - s micro-batches alive, and each round of p - s micro-batches takes
// at least the time trip(s) of one trip through the stages from s on and back, so
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
struct TimeBound {
  Picoseconds least = 0;
  // The lower bound of the step time without the time `beside`, as if all activations stayed on the device.
  Picoseconds on_device = 0;
  Picoseconds beside = 0;            // longest busy time of host link, host processors or disks, beside compute
  Picoseconds least_update = 0;      // least time of the optimizer update on any stage
  std::vector<Picoseconds> updates;  // for each stage, the time of the optimizer update
};

// Lower bounds of the step time of one strategy, including the transfers between stages and among replicas.
struct PointTime {
  Features features;
  ReplicaGroup* replicas = nullptr;
  // The lower bound of this strategy's step time if activations stayed on the device. If more layers are recomputed, it
  // falls by may_fall() at most: a recomputed last layer may overlap more with the next pass.
  Picoseconds on_device = 0;
  Hops hops;                       // for one micro-batch, the times of its sends between stages
  std::vector<Picoseconds> works;  // for each stage, the compute time of all micro-batches in a step
};

TimeBound time_bound(LayoutCosts& costs, const CellWork& work);
PointTime point_time(LayoutCosts& costs, const CellWork& work, const TimeBound& time, const Features& features);

// A lower bound of the step's end on stage s, where gradients are reduced only after the last micro-batch: gradients
// are reduced when the last backward has ended, and with sharded optimizer states the weights are gathered after the
// update or before the next step's first forward. done: end time of the stage's last backward.
Picoseconds replicas_end(BoundCache& cache, const CellWork& work, const TimeBound& time, const PointTime& point,
                         std::size_t s, Picoseconds done);

// The most by which the lower bound of the step time may fall when more layers are recomputed: a recomputed last layer
// of a chunk may overlap more with the next pass. nullopt: no limit is known.
std::optional<Picoseconds> may_fall(const CellWork& work);

}  // namespace orrery
