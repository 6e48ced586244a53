#pragma once

#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// A stretch of time (run) in which a lane computes the forward or the backward pass of one micro-batch. A pipeline
// diagram shows it as a box with the micro-batch's number.
struct Run {
  Picoseconds begin = 0, end = 0;
  std::int32_t micro_batch = -1;
  std::int16_t chunk = 0;
  Kind kind = Kind::forward;
};

// Returns the stretches of time (runs) in which a lane computes for one micro-batch, in order. Another micro-batch,
// model chunk or direction (forward, backward) begins a new run. So does a pause that is many times as long as the
// compute before it, such as that between a layer's recomputation and a much later backward pass.
std::vector<Run> runs_of(const Timeline& timeline, const Track& track);

}  // namespace orrery
