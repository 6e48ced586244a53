#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Lower bounds of the step time of a cell (strategies with the same RankLayout and MemoryPlan). In a pipeline, before
// the first pass on stage s a micro-batch has come through the stages before s, and after the last pass on stage s a
// gradient goes back through them (Narayanan et al. 2021, section 2.2), so
//   step >= head(s) + micro-batches * work(s) + tail(s) + update
// and under 1F1B, where stage s of p keeps at most p - s micro-batches alive, each round of p - s micro-batches takes
// at least one trip through the stages from s on and back:
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
struct TimeBound {
  Picoseconds least = 0;
  // Bound without transfers to and from the host, as if all activations stayed on the device.
  Picoseconds on_device = 0;
  Picoseconds beside = 0;            // time of transfers to and from the host, which may run beside compute
  Picoseconds least_update = 0;      // least update time of any stage
  std::vector<Picoseconds> updates;  // for each stage, the time of the update
};

// Bounds of the time of one strategy, with the transfers between stages and among replicas.
struct PointTime {
  Features features;
  ReplicaGroup* replicas = nullptr;
  // As TimeBound::on_device, for one strategy; as more layers are recomputed it falls by may_fall() at most.
  Picoseconds on_device = 0;
  Hops hops;                       // for one micro-batch, the times of its sends between stages
  std::vector<Picoseconds> works;  // for each stage, the time of its work
};

TimeBound time_bound(LayoutCosts& costs, const CellWork& work);
PointTime point_time(LayoutCosts& costs, const CellWork& work, const TimeBound& time, const Features& features);

// The end of the step on a stage whose gradients are reduced only after the last micro-batch: gradients are reduced
// when the last backward has ended, and with sharded optimizer states the weights are gathered after the update or
// before the first forward of the next step. done: end time of the last backward.
Picoseconds replicas_end(BoundCache& cache, const CellWork& work, const TimeBound& time, const PointTime& point,
                         std::size_t s, Picoseconds done);

// The most by which the time bound may fall when more layers are recomputed. nullopt: any amount.
std::optional<Picoseconds> may_fall(const CellWork& work);

}  // namespace orrery
