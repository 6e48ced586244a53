#pragma once

#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// A stretch of time (run) in which a lane computes for one micro-batch in one direction: a pipeline diagram shows it as
// a box with the micro-batch's number.
struct Run {
  Picoseconds begin = 0, end = 0;
  std::int32_t micro_batch = -1;
  std::int16_t chunk = 0;
  Kind kind = Kind::forward;
};

// Returns the stretches of time (runs) in which a lane computes for one micro-batch, in order. Another micro-batch,
// chunk or direction begins a new run; so does a pause that is many times as long as the compute before it (a layer
// recomputed long before its backward pass).
std::vector<Run> runs_of(const Timeline& timeline, const Track& track);

}  // namespace orrery
