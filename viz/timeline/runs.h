#pragma once

#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// A stretch of a lane in which it computes for one micro-batch in one direction: what a pipeline's diagram shows as a
// box with a number.
struct Run {
  Picoseconds begin = 0, end = 0;
  std::int32_t micro_batch = -1;
  std::int16_t chunk = 0;
  Kind kind = Kind::forward;
};

// The runs of a lane, in order of time. A pause does not end a run unless it is many times as long as the compute
// before it (a layer recomputed long before its backward); another micro-batch, chunk or direction does.
std::vector<Run> runs_of(const Timeline& timeline, const Track& track);

}  // namespace orrery
