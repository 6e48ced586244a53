#pragma once

#include "sim/search/transfers.h"

namespace orrery {

// Lower bounds of the time of a cell's step, whatever its features. Time of a pipeline: before the first action of
// stage s a micro-batch has come through the stages before s, and after the last action of stage s a gradient goes back
// through them (Narayanan et al. 2021, section 2.2), so
//   step >= head(s) + micro-batches * work(s) + tail(s) + update
// and under 1F1B, where stage s holds at most p - s micro-batches, every p - s of them take a whole round trip:
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
struct TimeBound {
  Picoseconds least = 0;
  Picoseconds on_device =
      0;                   // bound without transfers to and from the host, as if all activations stayed on the device
  Picoseconds beside = 0;  // time that transfers to and from the host take
  Picoseconds least_update = 0;      // least update time of any stage
  std::vector<Picoseconds> updates;  // update times, by stage
};

// Bounds of the time of one point of a cell, with the transfers between stages and among replicas.
struct PointTime {
  Features features;
  ReplicaGroup* replicas = nullptr;
  Picoseconds on_device = 0;  // as of the cell, and like it never lower as more layers run again, but for may_fall()
  Hops hops;                  // sends of one micro-batch
  std::vector<Picoseconds> works;  // by stage: work of the stage
};

TimeBound time_bound(LayoutCosts& costs, const CellWork& work);
PointTime point_time(LayoutCosts& costs, const CellWork& work, const TimeBound& time, const Features& features);

// End of a stage whose gradients stay whole until the last micro-batch: they are reduced when the last backward has
// ended, and under sharding the weights are gathered after the update or before the first forward of the next step.
// done: end of the last backward.
Picoseconds replicas_end(BoundCache& cache, const CellWork& work, const TimeBound& time, const PointTime& point,
                         std::size_t s, Picoseconds done);

// The most by which the time bound of a cell that runs more layers again may lie below that of the cell. nullopt: any
// amount.
std::optional<Picoseconds> may_fall(const CellWork& work);

}  // namespace orrery
